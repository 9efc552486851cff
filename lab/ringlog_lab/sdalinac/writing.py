"""Write rates of the narrow sample table, and of ways to write it: papers/000, table 3 and figure 1."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from psycopg import sql

from ringlog.clients import Address, call, connect
from ringlog.loadtest.experiment.server import WRITER, Server
from ringlog.schema import session

TABLES = {
    "plain": "no keys, no partitions",
    "keys": "keys, no partitions",
    "keys_inherited": "keys, partitions by inheritance",
    "inherited": "no keys, partitions by inheritance",
    "keys_declared": "keys, declared partitions",
    "declared": "no keys, declared partitions",
}
CHANNELS = 200
BATCH = 1000
"""Rows of a commit in table 3."""
RING = 5000
_COLUMNS = (
    "channel_id",
    "smpl_time",
    "nanosecs",
    "severity_id",
    "status_id",
    "num_val",
    "float_val",
    "str_val",
    "datatype",
)
FACILITY = f"""timezone = "UTC"

[[table]]
name = "sample"
rows = {RING}
cycle = 0.001
column = [{{ name = "value", type = "double" }}]

[[table]]
name = "wide"
rows = {RING}
cycle = 0.001
[[table.column]]
name = "value_{{n}}"
count = 100
type = "double"
"""

Row: TypeAlias = tuple[Any, ...]
# Writes a number of rows, and returns when all are acknowledged.
Scheme: TypeAlias = Callable[[Sequence[Row]], None]


@dataclass(frozen=True)
class Wrote:
    """Rows written in a way for some time."""

    scheme: str
    batch: int
    rows: int
    found: int
    seconds: float
    cpu: float
    """seconds of the connections' backends, and of the gateway"""
    values: int = 1
    """in each row"""

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def cost(self) -> float:
        """CPU seconds of the server, a row."""
        return self.cpu / self.rows


def install(server: Server) -> None:
    """Makes CSS's archive in ringlog's database; the writer may write it."""
    server.administrator.execute((Path(__file__).with_name("archive.sql")).read_text())
    for right in ("usage, create on schema css", "all on all tables in schema css"):
        server.administrator.execute(sql.SQL("grant {} to {}").format(sql.SQL(right), sql.Identifier(WRITER)))
    # the trigger makes tables whose keys refer to the channels
    server.administrator.execute("alter function css.to_its_week() security definer")


class _Rows:
    """Samples of many channels, one after another."""

    def __init__(self) -> None:
        self._moment = datetime.now(UTC).replace(tzinfo=None)
        self._number = 0

    def take(self, count: int) -> list[Row]:
        rows = []
        for _ in range(count):
            self._number += 1
            moment = self._moment + timedelta(microseconds=100 * self._number)
            value = self._number * 0.25
            rows.append((1 + self._number % CHANNELS, moment, 0, 1, 1, None, value, None, " "))
        return rows


def configurations(server: Server, seconds: float) -> Iterator[Wrote]:
    """Each table of TABLES in batches of 1,000, as CSS's archive engine writes."""
    with session.connect(server.conninfo(WRITER)) as connection:
        for table in TABLES:
            yield _timed(server, table, table, BATCH, _pipelined(connection, table), seconds)


def schemes(server: Server, batches: Sequence[int], seconds: float) -> Iterator[Wrote]:
    """Each way to write one table with keys, in batches of these numbers of rows."""
    table = "keys"
    with session.connect(server.conninfo(WRITER)) as connection:
        yield _timed(server, table, "single INSERT", 1, _single(connection, table), seconds)
        for batch in batches:
            for name, scheme in (
                ("batched INSERT", _pipelined(connection, table)),
                ("multi-row INSERT", _multi_row(connection, table)),
                ("COPY", _copy(connection, table)),
            ):
                yield _timed(server, table, name, batch, scheme, seconds)
    address = Address(WRITER, server.host, server.port)
    with closing(connect(address, server.password, timeout=300)) as tds:
        yield _timed(server, "", "TDS: RPC", 1, _rpc(tds), seconds)
        yield _timed(server, "", "TDS: RPC, 100 values", 1, _wide(tds), seconds, 100, "wide")
        for batch in batches:
            yield _timed(server, "", "TDS: calls in one batch", batch, _calls(tds), seconds)
            yield _timed(server, table, "TDS: bulk copy", batch, _bulk(tds, table), seconds)


def _timed(
    server: Server,
    table: str,
    name: str,
    batch: int,
    scheme: Scheme,
    seconds: float,
    values: int = 1,
    ring: str = "sample",
) -> Wrote:
    """Writes for these seconds into a table of CSS or, without one, of ringlog; its rows are counted."""
    where = sql.Identifier("css", table) if table else sql.Identifier("weeks", ring)
    if not table or table != "keys":
        server.administrator.execute(sql.SQL("truncate {}").format(where))
    count = sql.SQL("select count(*) from {}").format(where)
    before = _one(server, count)
    rows, written = _Rows(), 0
    spent, mark = 0.0, server.mark()
    while spent < seconds:
        some = rows.take(batch)
        began = time.perf_counter()
        scheme(some)
        spent += time.perf_counter() - began
        written += batch
    end = server.mark()
    cpu = end.backends - mark.backends + end.gateway - mark.gateway
    return Wrote(name, batch, written, _one(server, count) - before, spent, cpu, values)


def _one(server: Server, query: sql.Composed) -> int:
    row = server.administrator.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _insert(table: str, rows: int = 1) -> sql.Composed:
    row = sql.SQL("({})").format(sql.SQL(", ").join(sql.Placeholder() * len(_COLUMNS)))
    return sql.SQL("insert into {} ({}) values {}").format(
        sql.Identifier("css", table),
        sql.SQL(", ").join(map(sql.Identifier, _COLUMNS)),
        sql.SQL(", ").join([row] * rows),
    )


def _single(connection: psycopg.Connection, table: str) -> Scheme:
    insert = _insert(table)

    def write(rows: Sequence[Row]) -> None:
        for row in rows:
            connection.execute(insert, row)
            connection.commit()

    return write


def _pipelined(connection: psycopg.Connection, table: str) -> Scheme:
    """INSERTs sent together, one commit, like JDBC's executeBatch."""
    insert = _insert(table)

    def write(rows: Sequence[Row]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(insert, rows)
        connection.commit()

    return write


_AT_ONCE = 5000
"""Rows of an INSERT: a statement has at most 65,535 parameters."""


def _multi_row(connection: psycopg.Connection, table: str) -> Scheme:
    def write(rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            connection.execute(_insert(table, len(some)), [value for row in some for value in row])
        connection.commit()

    return write


def _copy(connection: psycopg.Connection, table: str) -> Scheme:
    statement = sql.SQL("copy {} ({}) from stdin").format(
        sql.Identifier("css", table), sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
    )

    def write(rows: Sequence[Row]) -> None:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
        connection.commit()

    return write


class _Ring:
    """The rows of a ring, in turn."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        self._last = self._last % RING + 1
        return self._last


_rings: dict[str, _Ring] = {}


def _ring(table: str) -> _Ring:
    return _rings.setdefault(table, _Ring())


def _rpc(connection: Any) -> Scheme:
    ring = _ring("sample")

    def write(rows: Sequence[Row]) -> None:
        for row in rows:
            call(connection, "put_sample", ring(), row[1], row[6])

    return write


def _wide(connection: Any) -> Scheme:
    ring = _ring("wide")

    def write(rows: Sequence[Row]) -> None:
        for row in rows:
            call(connection, "put_wide", ring(), row[1], *[row[6]] * 100)

    return write


def _calls(connection: Any) -> Scheme:
    """The calls as one text, which the server answers once."""
    ring = _ring("sample")

    def write(rows: Sequence[Row]) -> None:
        text = "\n".join(f"exec put_sample {ring()}, '{row[1]}', {row[6]!r}" for row in rows)
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"begin transaction\n{text}\ncommit transaction")
            while cursor.nextset():
                pass

    return write


def _bulk(connection: Any, table: str) -> Scheme:
    places = [index + 1 for index in range(len(_COLUMNS))]

    def write(rows: Sequence[Row]) -> None:
        connection.bulk_copy(f"css.{table}", rows, column_ids=places)

    return write
