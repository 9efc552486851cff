"""The forms in which HALF's load (papers/002) is stored.

2,000 doubles at 10 Hz: as ringlog's logs, 20 tables of 100 columns; as TimescaleDB's hypertables of the same
rows; and in HALF's own form, a row for each item.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import psutil
import psycopg
from psycopg import sql

from ringlog.history.summaries import ENOUGH, Turn, summarise
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import COLUMN, half
from ringlog.loadtest.experiment.server import Server, postgres_cpu
from ringlog.schema.layout import BLOCK, SCHEMA_OF_LEVEL

TABLES, COLUMNS, HERTZ = 20, 100, 10
CHANNELS = TABLES * COLUMNS
BIN = 10
"""Seconds of a span of the summaries, TimescaleDB's continuous aggregates too."""
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_HEAD, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_NARROW = np.dtype(
    [("n", ">i2"), ("l1", ">i4"), ("t", ">i8"), ("l2", ">i4"), ("c", ">i4"), ("l3", ">i4"), ("v", ">f8")]
)
_WIDE = np.dtype(
    [
        *(("n", ">i2"), ("l1", ">i4"), ("s", ">i4"), ("l2", ">i4"), ("t", ">i8")),
        ("x", [("l", ">i4"), ("v", ">f8")], (COLUMNS,)),
    ]
)
"""Rows of PostgreSQL's binary COPY: the number of columns, then each with its length."""


@dataclass(frozen=True)
class HalfLoad:
    """The values, a row for each tenth of a second, a column for each channel."""

    values: np.ndarray
    begin: datetime

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(seconds=len(self.values) / HERTZ)

    @property
    def bins(self) -> int:
        return len(self.values) // (BIN * HERTZ)

    def moments(self, first: int, last: int) -> np.ndarray:
        """Microseconds since PostgreSQL's epoch."""
        begin = (self.begin - _POSTGRES_EPOCH) // timedelta(microseconds=1)
        return begin + 1_000_000 // HERTZ * np.arange(first, last)


class Form(ABC):
    """A way to store the load in a PostgreSQL."""

    title: str

    def __init__(self, load: HalfLoad, connection: psycopg.Connection, postmaster: psutil.Process) -> None:
        self.load = load
        self.connection = connection
        self.postmaster = postmaster

    def cpu(self) -> float:
        return postgres_cpu(self.postmaster)[0]

    @abstractmethod
    def create(self) -> None:
        """Makes the tables."""

    @abstractmethod
    def copies(self, first: int, last: int) -> Iterator[tuple[sql.Composed, bytes]]:
        """COPY statements and their data, for rows of the load."""

    def compress(self) -> None:
        """The last step of loading."""
        return

    @abstractmethod
    def vacuum(self) -> None: ...

    @abstractmethod
    def size(self) -> int:
        """Bytes of tables and indexes."""

    @abstractmethod
    def summarise(self) -> None:
        """Makes summaries of BIN seconds of all rows."""

    @abstractmethod
    def rows(self, channels: Sequence[int]) -> list[sql.Composed]:
        """Queries of all values of channels."""

    @abstractmethod
    def spans(self, channels: Sequence[int]) -> list[sql.Composed]:
        """Of min, max and mean of BIN seconds, from the rows."""

    @abstractmethod
    def newest(self) -> list[list[sql.Composed]]:
        """Queries of the newest value of every channel, in each usual form."""

    @abstractmethod
    def summaries(self, channels: Sequence[int]) -> list[sql.Composed]:
        """Of min, max and mean of BIN seconds, from the summaries; the least is in a column `min`."""

    def stored(self, channels: Sequence[int]) -> list[sql.Composed]:
        """The same without rows that are not summarised yet."""
        return self.summaries(channels)

    def between(self) -> sql.Composed:
        return sql.SQL('"time" >= {} and "time" < {}').format(self.load.begin, self.load.end)


class _Wide(Form):
    """Rows of 100 channels, in 20 tables."""

    bin = sql.SQL("date_bin('10 s', \"time\", '2000-01-01 00:00+00')")

    @abstractmethod
    def table(self, number: int) -> sql.Identifier: ...

    @property
    def tables(self) -> list[sql.Identifier]:
        return [self.table(number) for number in range(TABLES)]

    def copies(self, first: int, last: int) -> Iterator[tuple[sql.Composed, bytes]]:
        names = sql.SQL(", ").join(map(sql.Identifier, _columns()))
        for number, table in enumerate(self.tables):
            rows = np.empty(last - first, _WIDE)
            rows["n"], rows["l1"], rows["l2"] = 2 + COLUMNS, 4, 8
            rows["s"] = np.arange(first, last) % 100 + 1
            rows["t"] = self.load.moments(first, last)
            rows["x"]["l"] = 8
            rows["x"]["v"] = self.load.values[first:last, number * COLUMNS : (number + 1) * COLUMNS]
            copy = sql.SQL('copy {} (seq_no, "time", {}) from stdin (format binary)').format(table, names)
            yield copy, _HEAD + rows.tobytes() + _END

    def vacuum(self) -> None:
        for table in self.tables:
            self.connection.execute(sql.SQL("vacuum analyze {}").format(table))

    def rows(self, channels: Sequence[int]) -> list[sql.Composed]:
        return self._each(channels, 'select "time", {} from {} where {} order by "time"', "{}")

    def spans(self, channels: Sequence[int]) -> list[sql.Composed]:
        text = f"select {self.bin.as_string()} as b, {{}} from {{}} where {{}} group by b order by b"
        return self._each(channels, text, "min({0}), max({0}), avg({0})")

    def _each(self, channels: Sequence[int], text: str, column: str) -> list[sql.Composed]:
        """A query for each table that some of the channels are in."""
        found: dict[int, list[sql.Composed]] = {}
        for channel in channels:
            name = sql.Identifier(_columns()[channel % COLUMNS])
            found.setdefault(channel // COLUMNS, []).append(_sql(column).format(name))
        return [
            _sql(text).format(sql.SQL(", ").join(columns), self.table(number), self.between())
            for number, columns in found.items()
        ]

    def newest(self) -> list[list[sql.Composed]]:
        query = sql.SQL('select * from {} order by "time" desc limit 1')
        return [[query.format(table) for table in self.tables]]


class Log(_Wide):
    """ringlog's logs, and its summaries."""

    title = "ringlog"

    def __init__(self, load: HalfLoad, server: Server) -> None:
        super().__init__(load, server.administrator, server.postmaster)

    def table(self, number: int) -> sql.Identifier:
        return sql.Identifier("weeks", half().names[number])

    def create(self) -> None:
        for table in self.tables:
            self.connection.execute(sql.SQL("truncate {}").format(table))
        # rows by COPY are older than housekeeping's progress
        again = "update ringlog.summarised set until = null where table_name = any(%s)"
        self.connection.execute(again, [half().names])

    def compress(self) -> None:
        # COPY bypasses the rings, which have the newest rows
        for name, log in zip(half().names, self.tables, strict=True):
            put = _sql(
                'select ringlog.{}(row(seq_no, "time", {})::{})'
                ' from (select * from {} order by "time" desc limit 1) as newest'
            ).format(
                sql.Identifier(f"put_{name}"),
                sql.SQL(", ").join(map(sql.Identifier, _columns())),
                sql.Identifier("online", name),
                log,
            )
            self.connection.execute(put)

    def newest(self) -> list[list[sql.Composed]]:
        rings = [
            _sql("select * from ringlog.{}(1)").format(sql.Identifier(f"get_{name}")) for name in half().names
        ]
        return [*super().newest(), rings]

    def size(self) -> int:
        return _number(
            self.connection,
            "select sum(pg_total_relation_size(relid)) from unnest(%s::regclass[]) as log "
            "cross join lateral pg_partition_tree(log)",
            [f"weeks.{name}" for name in half().names],
        )

    def summarise(self) -> None:
        # other tables have their summaries, and fewer new spans
        enough = min(ENOUGH, self.load.bins)
        end = self.load.end + timedelta(seconds=2 * BIN)
        made = summarise(self.connection.info.dsn, end, enough=enough, turn=Turn.HELD)
        if {made.get(name) for name in half().names} != {len(self.load.values)}:
            raise LoadTestError("the summaries of HALF's load could not be made: a transaction has gone on")

    def summaries(self, channels: Sequence[int]) -> list[sql.Composed]:
        names = [f"{half().names[each // COLUMNS]}/{_columns()[each % COLUMNS]}" for each in channels]
        query = sql.SQL("select * from ringlog.get_trends({}, {}, {}, {})")
        return [query.format(",".join(names), self.load.begin, self.load.end, self.load.bins + 1)]

    def stored(self, channels: Sequence[int]) -> list[sql.Composed]:
        found: dict[int, list[str]] = {}
        for channel in channels:
            found.setdefault(channel // COLUMNS, []).append(_columns()[channel % COLUMNS])
        text = (
            'select column_name, "time", min, max, mean from {} where column_name = any ({}) and {}'
            # no row of it begins earlier than a block's length before
            ' and block > {} and block < {} order by column_name, "time"'
        )
        begin = self.load.begin - timedelta(seconds=BIN * BLOCK[BIN])
        return [
            _sql(text).format(
                sql.Identifier(SCHEMA_OF_LEVEL[BIN], half().names[number]),
                names,
                self.between(),
                begin,
                self.load.end,
            )
            for number, names in found.items()
        ]


class Hypertables(_Wide):
    """The same rows in TimescaleDB, compressed, and a continuous aggregate for each table."""

    title = "TimescaleDB, wide, compressed"
    bin = sql.SQL("time_bucket('10 s', \"time\")")

    def table(self, number: int) -> sql.Identifier:
        return sql.Identifier("public", f"wide_{number}")

    def create(self) -> None:
        columns = ", ".join(f"{name} double precision" for name in _columns())
        for number in range(TABLES):
            name = f"public.wide_{number}"
            for text in (
                f'create table {name} (seq_no integer not null, "time" timestamptz not null, {columns})',
                f"select create_hypertable('{name}', 'time', chunk_time_interval => interval '1 day')",
                f"alter table {name} set (timescaledb.compress, timescaledb.compress_orderby = 'time')",
            ):
                self.connection.execute(_sql(text))

    def compress(self) -> None:
        _compress(self.connection, [f"public.wide_{number}" for number in range(TABLES)])

    def size(self) -> int:
        names = [f"public.wide_{number}" for number in range(TABLES)]
        return _number(
            self.connection, "select sum(hypertable_size(of)) from unnest(%s::regclass[]) of", names
        )

    def summarise(self) -> None:
        parts = ", ".join(
            f"min({name}) as min_{place}, max({name}) as max_{place}, avg({name}) as mean_{place}"
            for place, name in enumerate(_columns())
        )
        for number in range(TABLES):
            _aggregate(
                self.connection,
                f"wide_{number}_spans",
                f"select time_bucket('10 s', \"time\") as b, {parts} from public.wide_{number} group by b",
            )

    def summaries(self, channels: Sequence[int]) -> list[sql.Composed]:
        found: dict[int, list[str]] = {}
        for channel in channels:
            place = channel % COLUMNS
            names = f'min_{place} as "min", max_{place}, mean_{place}'
            found.setdefault(channel // COLUMNS, []).append(names)
        return [
            _sql(
                f"select b, {', '.join(parts)} from public.wide_{number}_spans where {{}} order by b"
            ).format(_between("b", self.load))
            for number, parts in found.items()
        ]


class Items(Form):
    """A narrow hypertable like HALF's, and a continuous aggregate."""

    title = "TimescaleDB, narrow"
    table = "items"

    def create(self) -> None:
        name = f"public.{self.table}"
        for text in (
            f'create table {name} ("time" timestamptz not null, channel integer not null, value float8)',
            f"select create_hypertable('{name}', 'time', chunk_time_interval => interval '1 hour')",
            f'create index on {name} (channel, "time" desc)',
        ):
            self.connection.execute(_sql(text))

    def copies(self, first: int, last: int) -> Iterator[tuple[sql.Composed, bytes]]:
        rows = np.empty((last - first, CHANNELS), _NARROW)
        rows["n"], rows["l1"], rows["l2"], rows["l3"] = 3, 8, 4, 8
        rows["t"] = self.load.moments(first, last)[:, None]
        rows["c"] = np.arange(CHANNELS)[None, :]
        rows["v"] = self.load.values[first:last]
        copy = sql.SQL('copy {} ("time", channel, value) from stdin (format binary)')
        yield copy.format(self.identifier), _HEAD + rows.tobytes() + _END

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier("public", self.table)

    def vacuum(self) -> None:
        self.connection.execute(sql.SQL("vacuum analyze {}").format(self.identifier))

    def size(self) -> int:
        return _number(self.connection, "select hypertable_size(%s::regclass)", f"public.{self.table}")

    def summarise(self) -> None:
        _aggregate(
            self.connection,
            f"{self.table}_spans",
            "select channel, time_bucket('10 s', \"time\") as b, min(value), max(value), avg(value) as mean "
            f"from public.{self.table} group by channel, b",
        )

    def rows(self, channels: Sequence[int]) -> list[sql.Composed]:
        text = (
            'select "time", channel, value from {} where channel = any ({}) and {} order by channel, "time"'
        )
        return [_sql(text).format(self.identifier, [*channels], self.between())]

    def spans(self, channels: Sequence[int]) -> list[sql.Composed]:
        text = (
            "select channel, time_bucket('10 s', \"time\") as b, min(value), max(value), avg(value) from {} "
            "where channel = any ({}) and {} group by channel, b order by channel, b"
        )
        return [_sql(text).format(self.identifier, [*channels], self.between())]

    def newest(self) -> list[list[sql.Composed]]:
        distinct = (
            'select distinct on (channel) channel, "time", value from {} {} order by channel, "time" desc'
        )
        last = sql.SQL('where "time" >= {}').format(self.load.end - timedelta(seconds=1))
        lateral = (
            'select each.channel, of."time", of.value from generate_series(0, {}) as each (channel) '
            "cross join lateral "
            '(select "time", value from {} where channel = each.channel order by "time" desc limit 1) as of'
        )
        return [
            [_sql(distinct).format(self.identifier, sql.SQL(""))],
            [_sql(distinct).format(self.identifier, last)],
            [_sql(lateral).format(sql.Literal(CHANNELS - 1), self.identifier)],
        ]

    def summaries(self, channels: Sequence[int]) -> list[sql.Composed]:
        text = (
            f"select * from public.{self.table}_spans where channel = any ({{}}) and {{}} order by channel, b"
        )
        return [_sql(text).format([*channels], _between("b", self.load))]


class CompressedItems(Items):
    """Its twin, compressed: segments of a channel, in the order of time."""

    title = "TimescaleDB, narrow, compressed"
    table = "compressed_items"

    def create(self) -> None:
        super().create()
        self.connection.execute(
            _sql(
                f"alter table public.{self.table} set (timescaledb.compress, "
                "timescaledb.compress_segmentby = 'channel', timescaledb.compress_orderby = 'time')"
            )
        )

    def compress(self) -> None:
        _compress(self.connection, [f"public.{self.table}"])


def _aggregate(connection: psycopg.Connection, name: str, query: str) -> None:
    """Makes a continuous aggregate and refreshes it over all of time."""
    connection.execute(
        _sql(f"create materialized view public.{name} with (timescaledb.continuous) as {query} with no data")
    )
    connection.execute(_sql(f"call refresh_continuous_aggregate('public.{name}', null, null)"))


def _compress(connection: psycopg.Connection, tables: Sequence[str]) -> None:
    for table in tables:
        for (chunk,) in connection.execute(_sql(f"select show_chunks('{table}')::text")).fetchall():
            connection.execute("select compress_chunk(%s)", [chunk])


def _between(column: str, load: HalfLoad) -> sql.Composed:
    return sql.SQL("{0} >= {1} and {0} < {2}").format(sql.Identifier(column), load.begin, load.end)


def _columns() -> list[str]:
    return [f"{COLUMN}{number}" for number in range(1, COLUMNS + 1)]


def _number(connection: psycopg.Connection, query: str, of: object) -> int:
    row = connection.execute(_sql(query), [of]).fetchone()
    assert row is not None
    return int(row[0])


def _sql(text: str) -> sql.SQL:
    """Text of this file alone."""
    return sql.SQL(text)
