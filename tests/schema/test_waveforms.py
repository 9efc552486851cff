"""Waveforms in rings and logs: written once, read whole, refused by name."""

import math
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.schema.facility import Column, Facility, LogPolicy, Table
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.installing.install import InstallRefused, install

from .conftest import Connect

BEGIN = datetime(2026, 3, 4, 12, 0, 0, 250, UTC)
POINTS = 1000


def scope(*more: Column, rows: int = 5, log: LogPolicy = LogPolicy()) -> Facility:  # noqa: B008
    """A facility of one table, `scope`, with a waveform between two single values."""
    columns = (
        Column("gain", "scope/gain", "real"),
        Column("trace", "scope/trace", "double[]", "V", points=POINTS),
        Column("shots", "scope/shots", "int"),
        *more,
    )
    return Facility("test", "UTC", (Table("scope", rows, 1.0, columns, log=log),))


def put(
    connection: psycopg.Connection, seq_no: int, trace: list[float] | None, moment: datetime = BEGIN
) -> None:
    connection.execute(
        "select ringlog.put_scope(row (%s, %s, 2.0, %s::double precision[], 7)::online.scope)",
        (seq_no, moment, trace),
    )


def test_a_row_is_read_back_from_ring_and_log(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope())
    connection = connect()
    trace = [0.5, -1.25, math.inf]
    put(connection, 1, trace)
    put(connection, 2, None, BEGIN + timedelta(seconds=1))
    put(connection, 3, [], BEGIN + timedelta(seconds=2))
    expected = [(1, 2.0, trace, 7), (2, 2.0, None, 7), (3, 2.0, [], 7)]
    for source in ("online.scope", "log.scope", "ringlog.get_scope(null)", "ringlog.get_scope_range()"):
        found = connection.execute(
            f'select seq_no, gain, trace, shots from {source} where "time" is not null order by seq_no'
        ).fetchall()
        assert found == expected, source
    # sent again, and an older row, which the ring refuses and the log takes
    put(connection, 1, trace)
    put(connection, 3, [9.0], BEGIN)
    assert connection.execute("select trace from online.scope where seq_no = 3").fetchall() == [([],)]
    assert connection.execute("select count(*) from log.scope").fetchall() == [(4,)]


def test_nan_is_kept_bit_for_bit(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope())
    connection = connect()
    (odd,) = struct.unpack(">d", bytes.fromhex("7ff8000000000abc"))
    with connection.cursor(binary=True) as cursor:
        cursor.execute("select ringlog.put_scope(row (1, %b, 2.0, %b, 7)::online.scope)", (BEGIN, [odd, 1.0]))
        cursor.execute("select trace from online.scope where seq_no = 1")
        ((trace,),) = cursor.fetchall()
    assert struct.pack(">d", trace[0]).hex() == "7ff8000000000abc"


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ("array_fill(1.0, array[1001])", "trace has 1001 points, and the facility file allows at most 1000"),
        ("array[[1.0, 2.0]]", "trace must be of one dimension and without a NULL"),
        ("array[1.0, null]", "trace must be of one dimension and without a NULL"),
    ],
)
def test_refused_by_name(engine: sa.Engine, connect: Connect, trace: str, why: str) -> None:
    install(engine, scope())
    connection = connect()
    with pytest.raises(psycopg.Error, match=f"put_scope: {why}"):
        connection.execute(
            f"select ringlog.put_scope(row (1, now(), 2.0, {trace}::double precision[], 7)::online.scope)"
        )
    assert connection.execute("select count(*) from log.scope").fetchall() == [(0,)]


def test_it_is_written_once(engine: sa.Engine, connect: Connect) -> None:
    """WAL of a row: at most 1.3 times its points and the WAL of a row without them."""
    install(engine, scope(Column("wide", "scope/wide", "double[]", points=10_000), rows=50))
    connection = connect()

    def wal_of(points: int, first: int) -> float:
        before = written()
        for number in range(40):
            connection.execute(
                "select ringlog.put_scope(row (%s, %s, 2.0, null, 7,"
                " (select array_agg(random()) from generate_series(1, %s)))::online.scope)",
                (number + 1, BEGIN + timedelta(seconds=first + number), points),
            )
        return float(written() - before) / 40

    def written() -> Decimal:
        """Bytes of WAL of this connection; others, such as autovacuum, write too."""
        connection.execute("select pg_stat_force_next_flush()")
        query = "select wal_bytes from pg_stat_get_backend_wal(pg_backend_pid())"
        ((bytes_,),) = connection.execute(query).fetchall()
        assert isinstance(bytes_, Decimal)
        return bytes_

    wal_of(10_000, 0)  # pages are written whole once after a checkpoint
    small, large = wal_of(1, 100), wal_of(10_000, 200)
    assert large - small <= 1.3 * 8 * 10_000


def test_waveforms_as_procedures(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope())
    connection = connect()
    for number in range(5):
        put(connection, number + 1, [float(number), 10.0], BEGIN + timedelta(seconds=number))

    def called(call: str) -> list[tuple[object, ...]]:
        return connection.execute(f"select * from ringlog.{call}").fetchall()

    second = BEGIN + timedelta(seconds=1)
    assert called("get_waveform('scope/trace')") == [(BEGIN + timedelta(seconds=4), [4.0, 10.0])]
    assert called(f"get_waveform('scope/trace', '{second.isoformat()}')") == [(second, [1.0, 10.0])]
    assert called(f"get_waveform('scope/trace', '{(BEGIN - timedelta(days=1)).isoformat()}')") == []
    everything = called("get_waveforms('scope/trace')")
    assert [trace for _, trace in everything] == [[float(n), 10.0] for n in range(5)]
    assert called("get_waveforms('scope/trace', every_nth => 2)") == everything[::2]
    assert called("get_waveforms('scope/trace', max_rows => 2)") == everything[:2]
    assert called(f"get_waveforms('scope/trace', '{second.isoformat()}')") == everything[1:]
    assert called("get_waveform_points('scope/trace')") == [(0, 4.0), (1, 10.0)]
    assert called("get_waveform_points('scope/trace', first_point => 1, max_points => 5)") == [(1, 10.0)]
    for wrong, why in (("scope/none", "there is no signal"), ("scope/gain", "is no waveform")):
        with pytest.raises(psycopg.Error, match=why):
            called(f"get_waveform('{wrong}')")
    for single in ("get_signal", "get_latest"):
        with pytest.raises(psycopg.Error, match="is a waveform"):
            called(f"{single}('scope/trace')")


def test_a_log_policy_that_omits_rows_does_not_affect_the_ring(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope(rows=4, log=LogPolicy(nth=2)))
    connection = connect()
    for number in range(4):
        put(connection, number + 1, [float(number)], BEGIN + timedelta(seconds=number))
    assert connection.execute("select trace from online.scope order by seq_no").fetchall() == [
        ([float(n)],) for n in range(4)
    ]
    assert connection.execute("select seq_no from log.scope order by 1").fetchall() == [(1,), (3,)]
    newest = connection.execute("select value from ringlog.get_waveform('scope/trace')").fetchall()
    assert newest == [([3.0],)]


def test_columns_and_rows_are_added(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope())
    connection = connect()
    put(connection, 1, [1.0])
    grown = scope(
        Column("second", "scope/second", "smallint[]", points=10),
        Column("valid", "scope/valid", "bit"),
        rows=7,
    )
    report = install(engine, grown)
    assert {"column scope.second", "column scope.valid"} <= set(report.created)
    assert not install(engine, grown)
    connection.execute(
        "select ringlog.put_scope(row (7, %s, 2.0, '{1}', 7, '{5,6}', true)::online.scope)",
        (BEGIN + timedelta(seconds=1),),
    )
    found = connection.execute(
        "select seq_no, trace, second, valid from online.scope order by seq_no"
    ).fetchall()
    assert len(found) == 7
    assert found[0] == (1, [1.0], None, None)
    assert found[-1] == (7, [1.0], [5, 6], True)


def test_changes_that_need_a_decision_are_refused(engine: sa.Engine) -> None:
    install(engine, scope())
    with pytest.raises(InstallRefused, match="another log policy for a table with waveforms"):
        install(engine, scope(log=LogPolicy(nth=5)))
    (table,) = scope().tables
    without_shots = Facility("test", "UTC", (Table("scope", 5, 1.0, table.columns[:2]),))
    with pytest.raises(InstallRefused, match="stays as it is"):
        install(engine, without_shots)


def test_stored_as_the_facility_file_says(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope(Column("quiet", "scope/quiet", "int[]", points=9, compress=True)))
    stored = connect().execute(
        "select distinct attname::text, attstorage::text"
        " from pg_attribute join pg_class c on c.oid = attrelid"
        " where relname like 'scope%' and relkind in ('r', 'p') and attname in ('trace', 'quiet') order by 1"
    )
    # x: extended, compressed where it helps; e: external, as it is (pg_attribute.attstorage)
    assert stored.fetchall() == [("quiet", "x"), ("trace", "e")]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('type = "double[]"', "a waveform needs points"),
        ('type = "double[]"\npoints = 0', "a waveform needs points"),
        ('type = "double"\npoints = 5', "points is for waveforms"),
        ('type = "real[]"\npoints = 5\ncompress = "yes"', "compress must be true or false"),
        ('type = "real[]"\npoints = 5\ndeadband = 1.0', "a deadband is for single values"),
        ('type = "text[]"\npoints = 5', "nor a waveform"),
    ],
)
def test_facility_files_that_are_refused(tmp_path: Path, lines: str, why: str) -> None:
    file = tmp_path / "facility.toml"
    file.write_text(f'[[table]]\nname = "t"\nrows = 5\ncycle = 1\n[[table.column]]\nname = "w"\n{lines}\n')
    with pytest.raises(FacilityError, match=why):
        load_facility(file)


def test_texts_are_arrays_too(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope(Column("states", "scope/states", "varchar(5)[]", points=2)))
    connection = connect()
    put_states = "select ringlog.put_scope(row (1, %s, 2.0, null, 7, %s::text[])::online.scope)"
    connection.execute(put_states, (BEGIN, ["ready", "a, b"]))
    for source in ("online.scope", "log.scope"):
        query = f'select states from {source} where "time" is not null'
        assert connection.execute(query).fetchall() == [(["ready", "a, b"],)]
    for states, why in (
        (["a", "b", "c"], "states has 3 points, and the facility file allows at most 2"),
        (["a", None], "without a NULL"),
    ):
        with pytest.raises(psycopg.Error, match=why):
            connection.execute(put_states, (BEGIN + timedelta(seconds=1), states))
    with pytest.raises(psycopg.Error, match="is no waveform of numbers"):
        connection.execute("select * from ringlog.get_waveform('scope/states')")


def test_nan_points_may_be_no_reading(engine: sa.Engine, connect: Connect) -> None:
    """nan = "null": a missing point is NaN, and a waveform of only these is no reading."""
    (table,) = scope(Column("fast", "scope/fast", "real[]", points=10)).tables
    install(engine, Facility("test", "UTC", (replace(table, nan="null"),)))
    connection = connect()
    for number, (given, stored) in enumerate(
        (
            ([1.5, math.nan, -2.0], [1.5, math.nan, -2.0]),
            ([math.inf, 3.0, -math.inf], [math.nan, 3.0, math.nan]),
            ([math.nan, math.inf], None),
            ([], []),
            (None, None),
        )
    ):
        connection.execute(
            "select ringlog.put_scope(row (1, %s, 'nan', %s::float8[], 7, %s::float4[])::online.scope)",
            (BEGIN + timedelta(seconds=number), given, given),
        )
        ((gain, *found),) = connection.execute("select gain, trace, fast from online.scope where seq_no = 1")
        assert gain is None
        for points in found:
            assert points == pytest.approx(stored, nan_ok=True) if stored else points == stored


def test_a_trend_of_waveforms_is_one_query(engine: sa.Engine, connect: Connect) -> None:
    install(engine, scope(Column("bits", "scope/bits", "bit[]", points=4)))
    connection = connect()
    traces: list[list[float] | None] = [[1.0, 3.0], [math.nan, -2.0, 4.0], None, [10.0], []]
    for number, trace in enumerate(traces):
        connection.execute(
            "select ringlog.put_scope(row (%s, %s, 2.0, %s::float8[], 7, '{t,f,t,t}')::online.scope)",
            (number + 1, BEGIN + timedelta(seconds=number), trace),
        )

    def trend(what: str, points: int) -> list[tuple[object, ...]]:
        query = "select * from ringlog.get_waveform_trend(%s, %s, %s, %s)"
        return connection.execute(query, (what, BEGIN, BEGIN + timedelta(seconds=6), points)).fetchall()

    # the numbers 1, 3, -2, 4 in the first bin, 10 in the second, whose other row has none
    assert trend("scope/trace", 3) == [
        (BEGIN, 2, -2.0, 4.0, 1.5, pytest.approx(math.sqrt(30 / 4)), 2, 3, 0),
        (BEGIN + timedelta(seconds=2), 1, 10.0, 10.0, 10.0, 10.0, 1, 1, 1),
        (BEGIN + timedelta(seconds=4), 1, None, None, None, None, 0, 0, 0),
    ]
    assert trend("scope/bits", 1) == [(BEGIN, 5, 0.0, 1.0, 0.75, pytest.approx(math.sqrt(0.75)), 4, 4, 0)]
    for what, why in (("scope/gain", "no waveform"), ("scope/none", "there is no signal")):
        with pytest.raises(psycopg.Error, match=why):
            trend(what, 3)
    with pytest.raises(psycopg.Error, match="points must be from 1"):
        trend("scope/trace", 0)


def insert_thresholds(connection: psycopg.Connection) -> dict[str, list[str] | None]:
    """The options of the partitions' TOAST tables; a partition without one is missing."""
    found = connection.execute(
        "select part.relname, toast.reloptions from pg_inherits join pg_class as part on part.oid = inhrelid"
        " join pg_class as toast on toast.oid = part.reltoastrelid where inhparent = 'weeks.scope'::regclass"
    )
    return dict(found.fetchall())


def test_waveforms_are_not_vacuumed_for_being_new(engine: sa.Engine, connect: Connect) -> None:
    """Storage parameter of https://www.postgresql.org/docs/current/sql-createtable.html: -1 turns it off."""
    install(engine, scope())
    connection = connect()
    for weeks in range(3):  # that are made for these rows
        put(connection, 1, [1.0], BEGIN + timedelta(weeks=weeks))
        make = "select ringlog.make_week('scope', date_trunc('week', %s, 'UTC'))"
        assert connection.execute(make, [BEGIN + timedelta(weeks=weeks)]).fetchone() == (1,)
    made = insert_thresholds(connection)
    assert len(made) == 6 + 3
    assert set(map(str, made.values())) == {"['autovacuum_vacuum_insert_threshold=-1']"}


def test_a_column_added_later_sets_the_option(engine: sa.Engine, connect: Connect) -> None:
    facility = scope(log=LogPolicy(nth=2))
    (table,) = facility.tables
    plain = replace(table, columns=tuple(each for each in table.columns if not each.is_waveform))
    install(engine, replace(facility, tables=(plain,)))
    connection = connect()
    assert insert_thresholds(connection) == {}
    install(engine, replace(facility, tables=(replace(table, columns=(*plain.columns, table.columns[1])),)))
    assert set(map(str, insert_thresholds(connection).values())) == {
        "['autovacuum_vacuum_insert_threshold=-1']"
    }
