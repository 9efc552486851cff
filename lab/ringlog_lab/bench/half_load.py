"""HALF's load (papers/002) in ringlog's logs: 2,000 doubles at 10 Hz, as 20 tables of 100 columns.

`ringlog loadtest half` stores HALF's items in other servers too.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from psycopg import sql

from ringlog.history.summaries.summarising import ENOUGH, Turn, summarise
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import half
from ringlog.loadtest.experiment.server import Server, postgres_cpu
from ringlog.schema.layout import BLOCK, SCHEMA_OF_LEVEL
from ringlog_lab.bench.history import catch_up, half_column, median_time, no_other_summaries
from ringlog_lab.record import Figure

TABLES, COLUMNS, HERTZ = half().names, half().column_names, 10
CHANNELS = len(TABLES) * len(COLUMNS)
BIN = 10
"""seconds of a span of the summaries"""
_ONE, _SOME = (1235,), tuple(range(700, 800))
"""Channels that are read: one with all its bits in use, and all of a table."""
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_HEAD, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_ROW = np.dtype(
    [
        *(("n", ">i2"), ("l1", ">i4"), ("s", ">i4"), ("l2", ">i4"), ("t", ">i8")),
        ("x", [("l", ">i4"), ("v", ">f8")], (len(COLUMNS),)),
    ]
)
"""A row of PostgreSQL's binary COPY: the number of columns, then each with its length."""


def measure_half_load(
    server: Server, minutes: int, rounds: int, doing: Callable[[str], None]
) -> Iterator[Figure]:
    """Figures of these minutes of the load. Raises LoadTestError for a wrong answer."""
    doing("making HALF's load")
    count = minutes * 60 * HERTZ
    begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes + 1)
    load = _Load(server, np.column_stack([half_column(channel, count) for channel in range(CHANNELS)]), begin)
    catch_up(server)
    with no_other_summaries(server):
        doing("HALF's load, loading")
        took = load.write()
        yield Figure("HALF's load, loaded", load.values.size / took / 1e6, "M values/s")
        yield Figure("HALF's load, a value on the disk", load.size() / load.values.size, "bytes")
        doing("HALF's load, summaries")
        began, spent = time.perf_counter(), postgres_cpu(server.postmaster)[0] + time.process_time()
        load.summarise()
        yield Figure(f"HALF's load, summaries of {BIN} s", time.perf_counter() - began, "s")
        spent = postgres_cpu(server.postmaster)[0] + time.process_time() - spent
        yield Figure(f"HALF's load, summaries of {BIN} s, CPU", spent, "s")
        load.vacuum()
        load.check()
        doing("HALF's load, reading")
        newest = [
            [sql.SQL('select * from {} order by "time" desc limit 1').format(table) for table in load.tables],
            [sql.SQL("select * from ringlog.{}(1)").format(sql.Identifier(f"get_{name}")) for name in TABLES],
        ]
        ways = {
            "all values of": load.rows,
            f"min max mean of {BIN} s from rows of": load.spans,
            f"min max mean of {BIN} s from summaries of": load.stored,
            f"min max mean of {BIN} s with what is not summarised of": load.trends,
        }
        for what, queries in ways.items():
            for channels in (_ONE, _SOME):
                title = f"HALF's load, {what} {len(channels)} channel{'s' * (len(channels) > 1)}"
                yield Figure(title, _milliseconds(server, queries(channels), rounds), "ms")
        shortest = min(_milliseconds(server, queries, rounds) for queries in newest)
        yield Figure(f"HALF's load, newest value of {CHANNELS:,} channels", shortest, "ms")


def _milliseconds(server: Server, queries: Sequence[sql.Composed], rounds: int) -> float:
    """The sum of the queries' median times, in ms."""
    connection = server.administrator
    return sum(median_time(connection, query.as_bytes(connection), rounds) for query in queries)


class _Load:
    """The values, a row for each tenth of a second, a column for each channel; and their tables."""

    tables = tuple(sql.Identifier("weeks", name) for name in TABLES)
    names = sql.SQL(", ").join(map(sql.Identifier, COLUMNS))

    def __init__(self, server: Server, values: np.ndarray, begin: datetime) -> None:
        self.values, self.begin = values, begin
        self.end = begin + timedelta(seconds=len(values) / HERTZ)
        self._bins = len(values) // (BIN * HERTZ)
        self._server = server
        self._connection = server.administrator

    def write(self) -> float:
        """Writes it, a minute in a transaction; returns the seconds of COPY and of the rings' newest rows."""
        for table in self.tables:
            self._connection.execute(sql.SQL("truncate {}").format(table))
        # rows by COPY are older than housekeeping's progress
        again = "update ringlog.summarised set until = null where table_name = any(%s)"
        self._connection.execute(again, [TABLES])
        took = 0.0
        for first in range(0, len(self.values), 60 * HERTZ):
            sent = [*self._copies(first, first + 60 * HERTZ)]
            began = time.perf_counter()
            with self._connection.transaction(), self._connection.cursor() as cursor:
                for text, data in sent:
                    with cursor.copy(text) as copy:
                        copy.write(data)
            took += time.perf_counter() - began
        began = time.perf_counter()
        # COPY bypasses the rings, which have the newest rows
        for name, log in zip(TABLES, self.tables, strict=True):
            put = sql.SQL(
                'select ringlog.{}(row(seq_no, "time", {})::{})'
                ' from (select * from {} order by "time" desc limit 1) as newest'
            )
            ring = sql.Identifier("online", name)
            self._connection.execute(put.format(sql.Identifier(f"put_{name}"), self.names, ring, log))
        took += time.perf_counter() - began
        self.vacuum()
        return took

    def _copies(self, first: int, last: int) -> Iterator[tuple[sql.Composed, bytes]]:
        """COPY statements and their data."""
        begin = (self.begin - _POSTGRES_EPOCH) // timedelta(microseconds=1)
        for number, table in enumerate(self.tables):
            rows = np.empty(last - first, _ROW)
            rows["n"], rows["l1"], rows["l2"] = 2 + len(COLUMNS), 4, 8
            rows["s"] = np.arange(first, last) % 100 + 1
            rows["t"] = begin + 1_000_000 // HERTZ * np.arange(first, last)
            rows["x"]["l"] = 8
            rows["x"]["v"] = self.values[first:last, number * len(COLUMNS) : (number + 1) * len(COLUMNS)]
            copy = sql.SQL('copy {} (seq_no, "time", {}) from stdin (format binary)')
            yield copy.format(table, self.names), _HEAD + rows.tobytes() + _END

    def vacuum(self) -> None:
        for table in self.tables:
            self._connection.execute(sql.SQL("vacuum analyze {}").format(table))

    def size(self) -> int:
        """Bytes of tables and indexes."""
        query = (
            "select sum(pg_total_relation_size(relid)) from unnest(%s::regclass[]) as log"
            " cross join lateral pg_partition_tree(log)"
        )
        row = self._connection.execute(query, [[f"weeks.{name}" for name in TABLES]]).fetchone()
        assert row is not None
        return int(row[0])

    def summarise(self) -> None:
        """Makes summaries of BIN seconds of all rows."""
        # other tables have their summaries, and fewer new spans
        end = self.end + timedelta(seconds=2 * BIN)
        made = summarise(self._connection.info.dsn, end, enough=min(ENOUGH, self._bins), turn=Turn.HELD)
        if {made.get(name) for name in TABLES} != {len(self.values)}:
            raise LoadTestError("the summaries of HALF's load could not be made: a transaction has gone on")

    def check(self) -> None:
        """Compares the summaries of a channel with its values."""
        wanted = self.values[:, _ONE[0]].reshape(self._bins, BIN * HERTZ).min(axis=1)
        for query in (*self.trends(_ONE), *self.stored(_ONE)):
            cursor = self._connection.execute(query)
            names = [one.name for one in cursor.description or ()]
            if [row[names.index("min")] for row in cursor.fetchall()] != wanted.tolist():
                raise LoadTestError("the summaries of a channel of HALF's load are not those of its values")

    def rows(self, channels: Sequence[int]) -> list[sql.Composed]:
        """Queries of all values of channels."""
        text = sql.SQL('select "time", {} from {} where {} order by "time"')
        return self._for_each_table(channels, text, sql.SQL("{}"))

    def spans(self, channels: Sequence[int]) -> list[sql.Composed]:
        """Queries of min, max and mean of BIN seconds, from the rows."""
        text = sql.SQL(
            "select date_bin('10 s', \"time\", '2000-01-01 00:00+00') as b, {} from {}"
            " where {} group by b order by b"
        )
        return self._for_each_table(channels, text, sql.SQL("min({0}), max({0}), avg({0})"))

    def stored(self, channels: Sequence[int]) -> list[sql.Composed]:
        """The same from the summaries."""
        text = sql.SQL(
            'select column_name, "time", min, max, mean from {} where column_name = any ({}) and {}'
            # no row of it begins earlier than a block's length before
            ' and block > {} and block < {} order by column_name, "time"'
        )
        begin = self.begin - timedelta(seconds=BIN * BLOCK[BIN])
        return [
            text.format(
                sql.Identifier(SCHEMA_OF_LEVEL[BIN], TABLES[table]), columns, self._between(), begin, self.end
            )
            for table, columns in _by_table(channels).items()
        ]

    def trends(self, channels: Sequence[int]) -> list[sql.Composed]:
        """The same from the summaries and from rows that are not summarised yet."""
        names = [f"{TABLES[table]}/{name}" for table, some in _by_table(channels).items() for name in some]
        query = sql.SQL("select * from ringlog.get_trends({}, {}, {}, {})")
        return [query.format(",".join(names), self.begin, self.end, self._bins + 1)]

    def _for_each_table(self, channels: Sequence[int], text: sql.SQL, column: sql.SQL) -> list[sql.Composed]:
        return [
            text.format(
                sql.SQL(", ").join(column.format(sql.Identifier(name)) for name in names),
                self.tables[table],
                self._between(),
            )
            for table, names in _by_table(channels).items()
        ]

    def _between(self) -> sql.Composed:
        return sql.SQL('"time" >= {} and "time" < {}').format(self.begin, self.end)


def _by_table(channels: Sequence[int]) -> dict[int, list[str]]:
    """The columns of channels, by the number of their table."""
    names: dict[int, list[str]] = {}
    for channel in channels:
        names.setdefault(channel // len(COLUMNS), []).append(COLUMNS[channel % len(COLUMNS)])
    return names
