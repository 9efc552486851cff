"""Rows as Arrow record batches, and the tables of signals."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlalchemy as sa
from adbc_driver_manager.dbapi import Cursor
from psycopg.conninfo import make_conninfo

from ringlog.cli import message_of
from ringlog.history import series
from ringlog.history.archive.folder import Damaged
from ringlog.history.connection import ReadError, connect
from ringlog.history.reading import newest, read
from ringlog.history.signals import locations
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from waiting import wait_until

from .conftest import COLUMNS

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def put(connection: psycopg.Connection, moment: datetime, *values: object, seq_no: int = 1) -> None:
    call = "select ringlog.put_every_type(row (%s, %s, %s, %s, %s, %s, %s, %s, %s)::online.every_type)"
    connection.execute(call, [seq_no, moment, *values])


def fill(connection: psycopg.Connection, rows: int) -> None:
    connection.execute(
        "insert into weeks.every_type (seq_no, time, a_real)"
        " select 1, %s + n * interval '1 second', n from generate_series(0, %s - 1) as n",
        [NOON, rows],
    )


def test_every_type_is_read_as_its_own(every_type: psycopg.Connection, conninfo: str) -> None:
    put(every_type, NOON, 0.1, 0.1, -(2**31), -(2**15), 2**63 - 1, True, "Grüße")
    put(every_type, NOON + timedelta(microseconds=1), *[None] * 7)
    (batch,) = read(conninfo, "every_type", [column.name for column in COLUMNS])
    assert batch.schema == pa.schema(
        {
            "time": pa.timestamp("us", tz="UTC"),
            "a_real": pa.float32(),
            "a_double": pa.float64(),
            "an_int": pa.int32(),
            "a_smallint": pa.int16(),
            "a_bigint": pa.int64(),
            "a_bit": pa.bool_(),
            "a_varchar": pa.string(),
        }
    )
    first, second = batch.to_pylist()
    assert first == {
        "time": NOON,
        "a_real": pytest.approx(0.1, rel=1e-7),
        "a_double": 0.1,
        "an_int": -(2**31),
        "a_smallint": -(2**15),
        "a_bigint": 2**63 - 1,
        "a_bit": True,
        "a_varchar": "Grüße",
    }
    assert second == dict.fromkeys(first) | {"time": NOON + timedelta(microseconds=1)}


def test_rows_from_the_start_on_and_before_the_end(every_type: psycopg.Connection, conninfo: str) -> None:
    fill(every_type, 10)
    start, end = NOON + timedelta(seconds=3), NOON + timedelta(seconds=6)
    (batch,) = read(conninfo, "every_type", ["a_real"], start, end)
    assert batch["a_real"].to_pylist() == [3, 4, 5]
    before, batch = read(conninfo, "every_type", ["a_real"], start, end, newest_before=True)
    assert before["a_real"].to_pylist() == [2]
    assert batch["a_real"].to_pylist() == [3, 4, 5]


def test_the_newest_row(every_type: psycopg.Connection, conninfo: str) -> None:
    put(every_type, NOON, 0.5, None, None, None, None, None, None)
    put(every_type, NOON + timedelta(seconds=1), None, 0.25, None, None, None, None, None)
    put(every_type, NOON + timedelta(seconds=2), *[None] * 7)

    def found(before: datetime) -> list[object] | None:
        row = newest(conninfo, "every_type", ["a_real", "a_double"], before)
        return row and [column[0].as_py() for column in row.columns]

    assert found(NOON + timedelta(seconds=9)) == [NOON + timedelta(seconds=2), None, None]
    assert found(NOON + timedelta(seconds=2)) == [NOON + timedelta(seconds=1), None, 0.25]
    assert newest(conninfo, "every_type", ["a_real"], NOON) is None


def test_no_more_rows_than_requested(every_type: psycopg.Connection, conninfo: str) -> None:
    fill(every_type, 10)
    for end in (None, NOON + timedelta(seconds=60)):
        batches = read(conninfo, "every_type", ["a_real"], NOON, end, limit=4)
        assert [value for batch in batches for value in batch["a_real"].to_pylist()] == [0, 1, 2, 3]


@pytest.mark.parametrize("by_superuser", [True, False])
def test_one_column_is_the_same_as_several(
    every_type: psycopg.Connection, conninfo: str, monkeypatch: pytest.MonkeyPatch, by_superuser: bool
) -> None:
    """Numbers are read in pages, beside a text as rows: with nulls, of one time, dense, or far apart."""
    if not by_superuser:
        every_type.execute("drop function ringlog.array_bytes(anyarray)")
    every_type.execute(
        "insert into weeks.every_type (seq_no, time, a_real, a_double, an_int, a_smallint, a_bigint, a_bit)"
        " select n %% 3, %s + make_interval(secs => n / 3 * 3 + (n > 30000)::int * 20000), n / 7.0, n / 7.0,"
        " nullif(n %% 11, 5), n %% 100, n * 10000000000, n %% 5 = 0 from generate_series(0, 39999) as n",
        [NOON],
    )
    every_type.execute(
        "insert into weeks.every_type (seq_no, time, a_real, a_double, an_int)"
        " select 1, %s + n * interval '1 ms', 'nan', 'inf', -n from generate_series(1, 4000) as n"
        " on conflict do nothing",
        [NOON + timedelta(seconds=20_000)],
    )
    start, end = NOON + timedelta(seconds=5), NOON + timedelta(seconds=59_000)
    names = [column.name for column in COLUMNS]
    rows = pa.Table.from_batches(read(conninfo, "every_type", names, start, end))
    assert rows.num_rows > 40_000
    cancelled: list[Cursor] = []
    monkeypatch.setattr(Cursor, "adbc_cancel", lambda cursor: cancelled.append(cursor))
    numbers = names[:-1]
    for least, values in ((series._LEAST, series._VALUES), (1, 4), (5, 3000)):
        monkeypatch.setattr(series, "_LEAST", least)
        monkeypatch.setattr(series, "_VALUES", values)
        # the smallest pages are many
        last = end if least > 1 else start + timedelta(seconds=100)
        expected = rows.filter(pc.less(rows["time"], last))
        for some in ([numbers] if least > 1 else []) + [[name] for name in names]:
            found = pa.Table.from_batches(read(conninfo, "every_type", some, start, last))
            assert found.schema == expected.select(["time", *some]).schema
            assert found["time"].equals(expected["time"])
            for name in some:
                # NaN is not equal to itself
                assert [*map(repr, found[name].to_pylist())] == [*map(repr, expected[name].to_pylist())]
        for limit in (1, 2, 3, 4, 50):
            part = pa.Table.from_batches(read(conninfo, "every_type", ["an_int"], start, last, limit=limit))
            assert part.equals(expected.select(["time", "an_int"]).slice(0, limit))
    # a cancelled query would end the transaction in which the rest is read
    assert cancelled == []


@pytest.mark.parametrize("by_superuser", [True, False])
def test_waveforms(engine: sa.Engine, conninfo: str, by_superuser: bool) -> None:
    kinds = {
        "real": "real",
        "double": "double precision",
        "int": "integer",
        "bigint": "bigint",
        "bit": "boolean",
    }
    columns = [Column(kind, f"t/{kind}", f"{kind}[]", points=9000) for kind in kinds]
    install(engine, Facility("test", "UTC", (Table("traces", 10, 1.0, tuple(columns)),)))
    rows: list[list[int] | None] = [[1, 0, 1], None, [], [*range(2)] * 4000, [0], None]
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if not by_superuser:
            connection.execute("drop function ringlog.array_bytes(anyarray)")
        # the last ones first, and two of one time
        for number, points in reversed([*enumerate(rows)]):
            values = ", ".join(f"%s::integer[]::{kind}[]" for kind in kinds.values())
            connection.execute(
                f"insert into weeks.traces (seq_no, time, {', '.join(kinds)})"
                f" values ({number}, %s, {values})".encode(),
                [NOON + timedelta(seconds=number // 2), *[points] * len(kinds)],
            )
    for kind in kinds:
        for begin in (0, 1, 2):
            start = NOON + timedelta(seconds=begin)
            found = pa.Table.from_batches(read(conninfo, "traces", [kind], start, NOON + timedelta(1)))
            assert found["time"].to_pylist() == [
                NOON + timedelta(seconds=number // 2) for number in range(2 * begin, len(rows))
            ]
            assert found[kind].to_pylist() == rows[2 * begin :]


def test_pages_are_found_among_empty_weeks_and_bursts(
    every_type: psycopg.Connection, conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows a week apart, a burst, and some at the table's cycle, within twenty years."""
    monkeypatch.setattr(series, "_LEAST", 100)
    monkeypatch.setattr(series, "_VALUES", 200)
    every_type.execute(
        "insert into weeks.every_type (seq_no, time, a_real)"
        " select 1, %s - n * interval '1 week', -n from generate_series(1, 520) as n",
        [NOON],
    )
    every_type.execute(
        "insert into weeks.every_type (seq_no, time, a_real)"
        " select 1, %s + n * interval '1 ms', n from generate_series(0, 999) as n",
        [NOON - timedelta(seconds=1)],
    )
    fill(every_type, 600)
    start, end = NOON - timedelta(days=3652), NOON + timedelta(days=3652)
    batches = [*read(conninfo, "every_type", ["a_real"], start, end)]
    assert max(batch.num_rows for batch in batches) < 100
    assert [value for batch in batches for value in batch["a_real"].to_pylist()] == [
        *range(-520, 0),
        *range(1000),
        *range(600),
    ]


def test_no_rows_are_one_empty_batch(every_type: psycopg.Connection, conninfo: str) -> None:
    (batch,) = read(conninfo, "every_type", ["a_varchar"], NOON, newest_before=True)
    assert batch.num_rows == 0
    assert batch.schema.names == ["time", "a_varchar"]


def test_rows_of_one_time_are_in_order_of_seq_no(every_type: psycopg.Connection, conninfo: str) -> None:
    for seq_no in (3, 1, 2):
        put(every_type, NOON, *[None] * 7, seq_no=seq_no)
    (batch,) = read(conninfo, "every_type", ["time", "seq_no"])
    assert batch["seq_no"].to_pylist() == [1, 2, 3]


def test_closing_the_iterator_cancels_the_query(every_type: psycopg.Connection, conninfo: str) -> None:
    fill(every_type, 400_000)
    with closing(connect(conninfo)) as connection:
        batches = read(connection, "every_type", ["a_real", "a_double"])
        first = next(batches)
        assert first.num_rows < 400_000
        batches.close()
        # the connection is usable, and its locks are released
        assert sum(batch.num_rows for batch in read(connection, "every_type", [], NOON)) == 400_000
        held = "select count(*) from pg_locks where relation = 'weeks.every_type'::regclass"
        assert every_type.execute(held).fetchone() == (0,)


@pytest.mark.parametrize("columns", [["a_real"], ["a_real", "an_int"], ["a_varchar"]])
def test_a_change_that_waits_for_a_read_does_not_stop_it(
    every_type: psycopg.Connection, conninfo: str, columns: list[str]
) -> None:
    """PostgreSQL does not see a circle of two sessions of one reader and of the change between them."""
    fill(every_type, 400_000)
    batches = read(conninfo, "every_type", columns, NOON, NOON + timedelta(days=9))
    n = next(batches).num_rows
    waits = "select count(*) from pg_locks where relation = 'weeks.every_type'::regclass and not granted"
    with psycopg.connect(conninfo) as other, ThreadPoolExecutor(1) as pool:
        other.execute("set lock_timeout = '100s'")
        change = pool.submit(other.execute, "lock table weeks.every_type in access exclusive mode")
        wait_until(lambda: every_type.execute(waits).fetchone() != (0,))
        assert n + sum(batch.num_rows for batch in batches) == 400_000
        change.result()


def test_a_batch_is_small_however_many_rows_there_are(every_type: psycopg.Connection, conninfo: str) -> None:
    fill(every_type, 400_000)
    sizes = [batch.nbytes for batch in read(conninfo, "every_type", [column.name for column in COLUMNS])]
    assert len(sizes) > 2
    assert max(sizes) < 16 << 20


def test_postgresql_decides_about_rights_to_read(every_type: psycopg.Connection, conninfo: str) -> None:
    every_type.execute("create role stranger login password 'strange'")
    stranger = make_conninfo(conninfo, host="127.0.0.1", user="stranger", password="strange")
    try:
        with pytest.raises(ReadError) as refused:
            next(read(stranger, "every_type", ["a_real"]))
        assert refused.value.sqlstate == "42501"
    finally:
        every_type.execute("drop role stranger")


@pytest.mark.parametrize(
    ("table", "columns", "sqlstate"), [("nothing", [], "42P01"), ("every_type", ["b"], "42703")]
)
def test_missing_objects_are_refused(
    every_type: psycopg.Connection, conninfo: str, table: str, columns: list[str], sqlstate: str
) -> None:
    with pytest.raises(ReadError) as refused:
        next(read(conninfo, table, columns))
    assert refused.value.sqlstate == sqlstate


def test_a_bound_without_a_zone_is_refused(conninfo: str) -> None:
    with pytest.raises(ValueError, match="2026-03-04"):
        read(conninfo, "every_type", [], datetime(2026, 3, 4))


def test_places_of_signals(engine: sa.Engine, conninfo: str) -> None:
    def column(name: str, signal: str) -> Column:
        return Column(name, signal, "real", "A")

    def facility(*columns: Column) -> Facility:
        return Facility("test", "UTC", (Table("magnets", 10, 1.0, columns),))

    install(engine, facility(column("a", "magnet"), column("b", "spare")))
    install(engine, facility(column("a", "old magnet"), column("b", "magnet")))
    found = locations(conninfo, ["magnet", "nobody's"])
    first, second = found["magnet"]
    assert (first.table, first.column, str(first.type), first.unit) == ("magnets", "a", "real", "A")
    assert (second.table, second.column) == ("magnets", "b")
    assert first.since is None
    assert first.until == second.since
    assert first.until is not None
    assert second.until is None
    assert found["nobody's"] == ()


def test_a_command_that_cannot_read_reports_that_in_a_line() -> None:
    """PostgreSQL ended while `ringlog maintain` made summaries of archived weeks: formerly a traceback."""
    assert message_of(ReadError("IO: [libpq] FATAL:\nterminating connection", None)) == (
        "PostgreSQL: IO: [libpq] FATAL: terminating connection",
        1,
    )
    assert message_of(Damaged("/archive/t/2024w01.parquet: No such file")) == (
        "/archive/t/2024w01.parquet: No such file (ringlog archive verify checks all files)",
        1,
    )
    assert message_of(KeyError("nobody foresaw it")) is None
