"""Trends agree with the rows, whether they are read from summaries or from rows."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.schema.layout import BLOCK
from servers import RunningServer

from .conftest import Databases, template
from .trend_bins import bins_of_rows, same

BEGIN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW = BEGIN + timedelta(days=5)
COLUMNS = (
    Column("current", "magnet/current", "real"),
    Column("spare", "spare", "real"),
    Column("on", "magnet/on", "bit"),
    Column("state", "magnet/state", "varchar(8)"),
)
LEVELS = (60, 600, 3600, 86_400)


def fill(_: sa.Engine, connection: psycopg.Connection) -> None:
    """Rows every 7 s for four days, of which all but the last day are summarised."""
    connection.execute(
        """
        insert into weeks.magnets (seq_no, time, current, "on")
        select
          1,
          %s + n * interval '7 seconds',
          case when n %% 17 = 0 then null when n %% 11 = 0 then 'NaN' else sin(n) * 100 end,
          n %% 5 = 0
        from generate_series(1, 49000) as n
        where n %% 9000 < 8000
        """,
        [BEGIN],
    )
    connection.execute("analyze")
    summarise(connection.info.dsn, BEGIN + timedelta(days=3), enough=1)


@pytest.fixture(scope="module")
def filled(prepared_databases: Databases) -> Iterator[str]:
    facility = Facility("test", "UTC", (Table("magnets", 10, 1.0, COLUMNS, summaries=LEVELS),))
    with template(prepared_databases, facility, fill) as name:
        yield name


@pytest.fixture
def magnets(filled: str, conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    ("begin", "end", "points", "width"),
    [
        # the shortest of the stored spans that are not shorter than (end - begin) / (points - 1), or 2, 3 or
        # 5 minutes
        (BEGIN, NOW, 1000, timedelta(minutes=10)),
        (BEGIN, NOW, 100, timedelta(hours=2)),
        (BEGIN - timedelta(days=800), NOW, 200, timedelta(days=8)),
        (BEGIN, BEGIN + timedelta(days=1), 1000, timedelta(minutes=2)),
        (BEGIN + timedelta(seconds=1.5), BEGIN + timedelta(hours=50, microseconds=1), 51, timedelta(hours=1)),
        (BEGIN + timedelta(hours=60), NOW, 200, timedelta(minutes=20)),
    ],
)
def test_a_trend_of_summaries(
    reading: psycopg.Connection, begin: datetime, end: datetime, points: int, width: timedelta
) -> None:
    trend = reading.execute(
        "select * from ringlog.get_trend('magnet/current', %s, %s, %s)", [begin, end, points]
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = trend.fetchall()
    same(rows, bins_of_rows(reading, "current", begin, end, width, epoch))
    assert len(rows) <= points


@pytest.mark.long
def test_bins_of_few_spans_of_each_length(engine: sa.Engine, conninfo: str) -> None:
    """For rows that leave most spans empty, or with NaN alone, or without a reading."""
    table = Table("magnets", 10, 1.0, COLUMNS[:1], summaries=(10, *LEVELS))
    install(engine, Facility("test", "UTC", (table,)))
    end = BEGIN + timedelta(days=200)
    with psycopg.connect(conninfo, autocommit=True) as magnets:
        magnets.execute(
            """
            insert into weeks.magnets (seq_no, time, current)
            select 1, %s + n ^ 3 * interval '0.27 s',
              case n %% 7 when 0 then null when 1 then 'nan' when 2 then 'inf' else sin(n) end
            from generate_series(1, 399) as n
            """,
            [BEGIN],
        )
        summarise(conninfo, end, enough=1)
        query = (
            "select time, n, min, max, mean, first, last, nans, nulls"
            " from ringlog.signal_bins(array['magnet/current'], %s, %s, %s, 'epoch') order by time"
        )
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        for level in BLOCK:
            for width in (timedelta(seconds=level * factor) for factor in (2, 3, 4, 5, 6)):
                found = magnets.execute(query, [BEGIN, end, width]).fetchall()
                same(found, bins_of_rows(magnets, "current", BEGIN, end, width, epoch))


def test_a_trend_of_rows(reading: psycopg.Connection) -> None:
    begin, end = BEGIN + timedelta(seconds=3), BEGIN + timedelta(hours=1)
    trend = reading.execute("select * from ringlog.get_trend('magnet/on', %s, %s, 1000)", [begin, end])
    same(trend.fetchall(), bins_of_rows(reading, '"on"::integer', begin, end, (end - begin) / 1000, begin))


def test_times_of_clocks_that_were_never_set(
    magnets: psycopg.Connection, conninfo: str, engine: sa.Engine
) -> None:
    """They count from 1970, or from 1900 as Sybase does. No week is made for them, and no summary."""
    put = "select ringlog.put_magnets(row (2, %s, %s, null, null, null)::online.magnets)"
    never = [datetime(1900, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)]
    never += [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1970, 1, 4, 23, 59, 59, tzinfo=UTC)]
    for number, moment in enumerate([*never, datetime(1970, 1, 5, tzinfo=UTC)]):
        magnets.execute(put, [moment, number])
        summarise(conninfo, BEGIN + timedelta(days=3))
    trend = "select sum(n)::integer, min(min), max(max) from ringlog.get_trend('magnet/current', %s, %s, %s)"
    for _ in range(2):
        for points in (1, 2, 1000):
            found = magnets.execute(trend, [never[0], datetime(2000, 1, 1, tzinfo=UTC), points])
            assert found.fetchall() == [(5, 0.0, 4.0)]
            found = magnets.execute(trend, [never[1], never[3], points])
            assert found.fetchall() == [(1, 1.0, 1.0)]
        assert [*problems_of(magnets)] == []
        # all of it again, from that week of 1970 on
        magnets.execute("truncate summary.magnets")
        magnets.execute("update ringlog.summarised set until = null")
        summarise(conninfo, BEGIN + timedelta(days=3))


def test_a_late_row_is_in_the_trend_at_once(magnets: psycopg.Connection, conninfo: str) -> None:
    late = BEGIN + timedelta(hours=30, microseconds=1)
    magnets.execute(
        "select ringlog.put_magnets(row (2, %s, 12345, null, null, null)::online.magnets)", [late]
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = bins_of_rows(magnets, "current", BEGIN, NOW, timedelta(hours=2), epoch)
    query = "select * from ringlog.get_trend('magnet/current', %s, %s, 100)"
    same(magnets.execute(query, [BEGIN, NOW]).fetchall(), expected)
    assert 12345.0 in [row[3] for row in expected]
    summarise(conninfo, BEGIN + timedelta(days=3))
    assert magnets.execute("select count(*) from ringlog.summary_mark").fetchone() == (0,)
    same(magnets.execute(query, [BEGIN, NOW]).fetchall(), expected)


def test_a_trend_follows_its_signal(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    moved = (
        Column("current", "old current", "real"),
        Column("spare", "magnet/current", "real"),
        *COLUMNS[2:],
    )
    install(engine, Facility("test", "UTC", (Table("magnets", 10, 1.0, moved, summaries=LEVELS),)))
    now = datetime.now(UTC) + timedelta(hours=1)
    magnets.execute("select ringlog.put_magnets(row (2, %s, 1, 7, null, null)::online.magnets)", [now])
    query = "select * from ringlog.get_trend('magnet/current', %s, %s, 10)"
    rows = magnets.execute(query, [now - timedelta(hours=1), now + timedelta(hours=1)]).fetchall()
    assert [row[1:3] for row in rows] == [(1, 7.0)]


def test_many_trends(reading: psycopg.Connection) -> None:
    query = "select signal, count(*) from ringlog.get_trends(%s, %s, %s, 100) group by 1"
    found = reading.execute(query, ["magnet/current, magnet/on", BEGIN, NOW]).fetchall()
    assert {name for name, _ in found} == {"magnet/current", "magnet/on"}
    found = reading.execute(query, ["magnet/current\nmagnet/on\n", BEGIN, NOW]).fetchall()
    assert len(found) == 2


def test_the_meaning_of_a_time(reading: psycopg.Connection) -> None:
    """By PostgreSQL's own aggregates over the rows."""
    query = """
        with number as (
          select time, nullif(current, 'NaN')::double precision as value, current
          from weeks.magnets where time >= %(begin)s and time < %(end)s
        )
        select count(value), min(value), max(value), avg(value), stddev_pop(value), sqrt(avg(value * value)),
          (array_agg(value order by time) filter (where value is not null))[1],
          (array_agg(value order by time desc) filter (where value is not null))[1],
          count(*) filter (where current = 'NaN'), count(*) filter (where current is null)
        from number
    """
    for begin, end in ((BEGIN, NOW), (BEGIN + timedelta(hours=3, seconds=2), BEGIN + timedelta(hours=60))):
        expected = reading.execute(query, {"begin": begin, "end": end}).fetchall()
        found = "select * from ringlog.get_statistics('magnet/current', %s, %s)"
        same(reading.execute(found, [begin, end]).fetchall(), expected)
    one = "select * from ringlog.get_trend('magnet/current', %s, %s, 1)"
    assert [row[:2] for row in reading.execute(one, [BEGIN, NOW]).fetchall()] == [
        (BEGIN, expected_n(reading))
    ]


def expected_n(connection: psycopg.Connection) -> int:
    query = "select count(*) from weeks.magnets where current <> 'NaN'"
    return int(connection.execute(query).fetchall()[0][0])


def test_states(magnets: psycopg.Connection) -> None:
    magnets.execute("delete from weeks.magnets")
    rows = [(0, True), (10, True), (30, False), (70, None), (80, True), (100, False)]
    for seconds, on in rows:
        magnets.execute(
            "select ringlog.put_magnets(row (2, %s, null, null, %s, null)::online.magnets)",
            [BEGIN + timedelta(seconds=seconds), on],
        )
    found = magnets.execute(
        "select * from ringlog.get_states('magnet/on', %s, %s)", [BEGIN, BEGIN + timedelta(seconds=120)]
    )
    # NULL is no state, and ends the one before
    assert found.fetchall() == [(0, 60.0, 2), (1, 50.0, 1)]
    found = magnets.execute(
        "select * from ringlog.get_states('magnet/on', %s, %s)",
        [BEGIN + timedelta(seconds=20), BEGIN + timedelta(seconds=75)],
    )
    assert found.fetchall() == [(0, 40.0, 1), (1, 10.0, 0)], "the state before the begin lasts into the time"
    with pytest.raises(errors.DatatypeMismatch, match="get_statistics"):
        magnets.execute("select * from ringlog.get_states('magnet/current')")


def test_distribution(magnets: psycopg.Connection) -> None:
    magnets.execute("delete from weeks.magnets")
    for seconds, current in ((0, 0.0), (10, 10.0), (40, 20.0), (50, None), (60, math.nan), (70, 30.0)):
        magnets.execute(
            "select ringlog.put_magnets(row (2, %s, %s, null, null, null)::online.magnets)",
            [BEGIN + timedelta(seconds=seconds), current],
        )
    span = [BEGIN, BEGIN + timedelta(seconds=100)]
    found = magnets.execute(
        "select * from ringlog.get_distribution('magnet/current', %s, %s, '0, 50, 100')", span
    )
    # 0 for 10 s, 10 for 30 s, 20 for 10 s, 30 for 30 s: NULL and NaN are no values, and end the one before
    assert found.fetchall() == [(0.0, 0.0, 17.5), (50.0, 15.0, 17.5), (100.0, 30.0, 17.5)]
    query = "select n, time_mean from ringlog.get_statistics_while(%s, null, %s, %s, weighted => true)"
    assert magnets.execute(query, ["magnet/current", *span]).fetchall() == [(4, 17.5)]
    late = [BEGIN + timedelta(seconds=20), BEGIN + timedelta(seconds=50)]
    found = magnets.execute("select * from ringlog.get_distribution('magnet/current', %s, %s, '50')", late)
    # 10 for 20 s from before the time, 20 for 10 s
    assert found.fetchall() == [(50.0, 20.0, pytest.approx(40 / 3))]


def test_every_so_often(reading: psycopg.Connection) -> None:
    query = "select * from ringlog.get_signal('magnet/current', %s, %s, every => %s)"
    hourly = reading.execute(query, [BEGIN, NOW, 3600]).fetchall()
    expected = bins_of_rows(
        reading, "current", BEGIN, NOW, timedelta(hours=1), datetime(1970, 1, 1, tzinfo=UTC)
    )
    assert hourly == [(row[0], row[5]) for row in expected if row[1]]
    uneven = reading.execute(query, [BEGIN, BEGIN + timedelta(hours=1), 12.5]).fetchall()
    expected = bins_of_rows(
        reading, "current", BEGIN, BEGIN + timedelta(hours=1), timedelta(seconds=12.5), BEGIN
    )
    assert uneven == [(row[0], row[5]) for row in expected if row[1]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("get_trend('nobody')", errors.UndefinedObject),
        ("get_trend('magnet/state')", errors.DatatypeMismatch),
        ("get_trend('magnet/on', now(), now())", errors.InvalidParameterValue),
        ("get_trend('magnet/on', '-infinity')", errors.InvalidParameterValue),
        ("get_trend('magnet/on', points => 0)", errors.InvalidParameterValue),
        ("get_signal('magnet/on', every => 5)", errors.InvalidParameterValue),
        ("get_statistics('nobody')", errors.UndefinedObject),
        ("get_statistics('magnet/on', now(), now())", errors.InvalidParameterValue),
        ("get_distribution('magnet/on', percents => '101')", errors.InvalidParameterValue),
        ("get_signal('magnet/on', now(), every => 0)", errors.InvalidParameterValue),
    ],
)
def test_refusals(reading: psycopg.Connection, call: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        reading.execute(f"select * from ringlog.{call}")


def test_a_trend_over_tds(server: RunningServer) -> None:
    """It also includes the newest rows, and a summary's view is a table of the database `hour`."""
    server.sql(
        "select ringlog.put_every_type("
        "row (3, now(), 4.5, null, null, null, null, true, 'x')::online.every_type)"
    )
    with server.connect(server.reader.user, server.reader.password) as connection:
        cursor = connection.cursor()
        cursor.execute("exec get_trend 'every_type/a_real'")
        rows = cursor.fetchall()
        assert [name for name, *_ in cursor.description] == [
            *("time", "n", "min", "max", "mean", "first", "last", "nans", "nulls")
        ]
        assert rows[-1][1:] == (1, 4.5, 4.5, 4.5, 4.5, 4.5, 0, 0)
        cursor.execute("select count(*) from hour..every_type")
        assert cursor.fetchone() is not None


def test_a_bin_in_which_a_signal_moved_is_returned_once(
    magnets: psycopg.Connection, engine: sa.Engine
) -> None:
    """So does one in which its unit was changed; a signal that has ended is read from summaries too."""
    first, spare, *others = COLUMNS
    moves = [
        (first, replace(spare, signal="magnet/other")),
        (replace(first, signal="magnet/other"), replace(spare, signal="magnet/current")),
        (replace(first, signal="magnet/other"), replace(spare, signal="magnet/current", unit="A")),
        (first, replace(spare, signal="magnet/other")),
        (replace(first, signal="magnet/third"), spare),
    ]
    magnets.execute("update weeks.magnets set spare = 1000 - current")
    changes = [BEGIN + timedelta(hours=hours) for hours in (30, 30.25, 41.7, 65)]
    magnets.execute("update ringlog.signal set valid_from = %s", [BEGIN - timedelta(days=1)])
    for columns, change in zip(moves, [BEGIN, *changes], strict=True):
        (before,) = magnets.execute("select clock_timestamp()").fetchone() or (None,)
        table = Table("magnets", 10, 1.0, (*columns, *others), summaries=LEVELS)
        install(engine, Facility("test", "UTC", (table,)))
        for bound in ("valid_from", "valid_to"):
            magnets.execute(f"update ringlog.signal set {bound} = %s where {bound} > %s", [change, before])
    magnets.execute("update ringlog.summarised set until = null")
    summarise(magnets.info.dsn, BEGIN + timedelta(days=3), enough=1)
    there = f"case when time >= '{changes[0]}' and time < '{changes[2]}' then spare else current end"
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    trend = "select * from ringlog.get_trend('magnet/current', %s, %s, %s)"
    for end, points, width, origin in (
        (changes[3], 4, timedelta(days=1), epoch),
        (changes[3], 100, timedelta(hours=1), epoch),
        (changes[1] + timedelta(hours=1), 100, timedelta(minutes=20), epoch),
        (changes[3], 1, changes[3] - BEGIN, BEGIN),
    ):
        rows = magnets.execute(trend, [BEGIN, end, points]).fetchall()
        same(rows, bins_of_rows(magnets, there, BEGIN, end, width, origin))
    found = magnets.execute(
        "select n, mean, std from ringlog.get_statistics('magnet/current', %s, %s)", [BEGIN, changes[3]]
    )
    expected = magnets.execute(
        f"select count(x), avg(x), stddev_pop(x) from (select nullif({there}, 'NaN')::float8 as x"
        " from weeks.magnets where time < %s) as value",
        [changes[3]],
    )
    same(found.fetchall(), expected.fetchall())
    every = "select time from ringlog.get_signal('magnet/current', %s, %s, every => 3600)"
    hours = [time for (time,) in magnets.execute(every, [BEGIN, changes[3]]).fetchall()]
    assert hours == sorted({*hours})


def test_a_signal_that_moves_to_an_existing_table(engine: sa.Engine, conninfo: str) -> None:
    """Earlier rows of the other table are not the signal's, whose rows are then elsewhere."""
    column = Column("current", "magnet/current", "real")
    old = Table("old", 10, 3600.0, (column, Column("x", "x", "real")), summaries=(86_400,))
    new = Table("new", 10, 3600.0, (Column("y", "y", "real"),), summaries=(86_400,))
    install(engine, Facility("test", "UTC", (old, new)))
    end = datetime.now(UTC)
    begin = end - timedelta(hours=100)
    fill = "insert into weeks.{} (seq_no, time, {}) select 1, %s + n * interval '1 hour', n + %s from {}"
    with psycopg.connect(conninfo, autocommit=True) as connection:
        hours = "generate_series(0, 99) as n"
        connection.execute(fill.format("old", "current", hours).encode(), [begin, 0])
        connection.execute(fill.format("new", "y", hours).encode(), [begin, 0])
        left = replace(old, columns=(replace(column, signal="old/current", retired=True), *old.columns[1:]))
        came = replace(new, columns=(*new.columns, column))
        install(engine, Facility("test", "UTC", (left, came)))
        connection.execute(
            fill.format("new", "current", "generate_series(1, 9) as n").encode(),
            [end + timedelta(minutes=5), 1000],
        )
        rows = connection.execute("select time, value from ringlog.get_signal('magnet/current')").fetchall()
        assert [value for _, value in rows] == [*range(100), *range(1001, 1010)]
        assert rows == sorted(rows)
        later = end + timedelta(days=1)
        trend = connection.execute(
            "select n, min, max from ringlog.get_trend('magnet/current', %s, %s, 1)", [begin, later]
        )
        assert trend.fetchall() == [(109, 0.0, 1009.0)]


def test_views_of_version_1_0_show_the_mean_too(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    """Version 1.0 has null for the mean of both infinities: its views are replaced."""
    text = "select pg_get_viewdef('day.magnets'::regclass)"
    ((today,),) = magnets.execute(text).fetchall()
    mean = r"CASE\s+WHEN \(n\[number\] > 0\) THEN mean\[number\]\s+ELSE NULL::double precision\s+END"
    before, count = re.subn(mean, "nullif(mean[number], 'NaN'::double precision)", today)
    assert count == 1, today
    magnets.execute(f"create or replace view day.magnets as {before}".encode())
    assert magnets.execute(text).fetchall() != [(today,)]
    described = replace(COLUMNS[0], description="current of the magnets")
    table = Table("magnets", 10, 1.0, (described, *COLUMNS[1:]), summaries=LEVELS)
    install(engine, Facility("test", "UTC", (table,)))
    assert magnets.execute(text).fetchall() == [(today,)]
