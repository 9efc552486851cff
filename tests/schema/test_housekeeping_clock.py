"""The clock by which weeks leave the log: a clock that has jumped is not trusted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.archive.restoring import PastRetention, restore
from ringlog.schema import clock
from ringlog.schema.facility import Column, Facility, Retention
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import Week, maintain
from ringlog.schema.trusted_clock import Clock

from .conftest import Connect, magnets_facility

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)
NOW = datetime.now(UTC).replace(microsecond=0)


def facility(weeks: int, *columns: Column) -> Facility:
    whole = magnets_facility()
    (table,) = whole.tables
    retention = Retention(weeks, "week")
    return replace(whole, tables=(replace(table, retention=retention, columns=(*table.columns, *columns)),))


@pytest.fixture
def magnets(engine: sa.Engine, connect: Connect) -> psycopg.Connection:
    """The log is kept for three weeks."""
    install(engine, facility(3))
    return connect()


def put(connection: psycopg.Connection, time: datetime, current: float = 1.0) -> None:
    call = "select ringlog.put_magnets(row (1, %s, %s, true, '')::online.magnets)"
    connection.execute(call, [time, current])


def times(connection: psycopg.Connection) -> list[datetime]:
    return [time for (time,) in connection.execute('select "time" from log.magnets order by 1')]


def judged(engine: sa.Engine, now: datetime) -> Clock:
    with engine.begin() as connection:
        return clock.judge(connection, [], ["magnets"], now)


def note(connection: psycopg.Connection, trusted: datetime) -> None:
    """The last round had another time than this database."""
    connection.execute(
        "update ringlog.housekeeping set trusted = %(at)s, seen = %(at)s, jumped = null", {"at": trusted}
    )


@pytest.mark.parametrize("days", [42, 3650])
def test_a_clock_that_is_ahead_for_one_start(
    engine: sa.Engine, magnets: psycopg.Connection, days: int
) -> None:
    assert judged(engine, NOW).trusted == NOW
    ahead = judged(engine, NOW + days * DAY)
    assert ahead.trusted == NOW + DAY
    assert ahead.doubt is not None
    assert f"{days}.0 days ahead of the last round" in ahead.doubt
    assert "ringlog maintain --clock-is-right" in ahead.doubt
    # however often it is seen, as long as no rows agree
    for hour in range(30):
        put(magnets, NOW + hour * HOUR)
        assert judged(engine, NOW + days * DAY + hour * HOUR).trusted == NOW + DAY
    back = judged(engine, NOW + 20 * HOUR)
    assert back.doubt is None
    assert back.trusted == NOW + 20 * HOUR


def test_a_clock_that_is_behind(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    judged(engine, NOW)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    behind = judged(engine, epoch)
    assert behind.trusted == epoch
    assert behind.doubt is not None
    assert "days behind the last round" in behind.doubt
    assert judged(engine, NOW + HOUR).doubt is None


def test_a_server_that_was_off_is_trusted_when_rows_have_agreed_for_a_day(
    engine: sa.Engine, magnets: psycopg.Connection
) -> None:
    judged(engine, NOW)
    on = NOW + 42 * DAY
    doubts = []
    for hour in range(26):
        put(magnets, on + hour * HOUR)
        doubts.append(judged(engine, on + hour * HOUR).doubt is not None)
    assert doubts == [True] * 24 + [False] * 2


def test_the_operator_confirms_the_clock(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    note(magnets, NOW - 42 * DAY)
    assert maintain(engine).doubt is not None
    with engine.begin() as connection:
        clock.trust(connection)
    assert maintain(engine).doubt is None


def test_weeks_wait_while_the_clock_is_not_trusted(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    """The clock of this machine is as far ahead of the last round as it would be of the true time."""
    last = NOW - 42 * DAY
    before = [last - 2 * WEEK, last - WEEK, last, last + HOUR]
    for time in before:
        put(magnets, time)
    for time in before:
        magnets.execute("select ringlog.make_week('magnets', %s, %s)", [Week.of(time).start, last])
    note(magnets, last)
    report = maintain(engine)
    assert report.set_aside == ()
    assert times(magnets) == before
    with engine.begin() as connection:
        clock.trust(connection)
    assert maintain(engine).set_aside != ()
    assert times(magnets) == []


def test_a_database_without_a_note_goes_by_its_weeks(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    """A database of an earlier ringlog, and a wrong clock at the first start of this one."""
    last = Week.of(NOW - 42 * DAY)
    magnets.execute("update ringlog.housekeeping set trusted = null, seen = null")
    for partition in magnets.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = 'weeks.magnets'::regclass"
        " and inhrelid::regclass::text not like '%default'"
    ).fetchall():
        magnets.execute(f"drop table {partition[0]}".encode())
    for number in range(5):
        magnets.execute(
            "select ringlog.make_week('magnets', %s, %s)", [last.start + number * WEEK, last.start]
        )
    put(magnets, last.start + HOUR)
    report = maintain(engine)
    assert report.doubt is not None
    assert report.set_aside == ()
    assert times(magnets) == [last.start + HOUR]


def test_weeks_are_restored(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    monday = Week.of(NOW).start
    before = [monday + n * WEEK + HOUR for n in (-2, -1, 0)]
    for number, time in enumerate(before):
        put(magnets, time, number / 2)
    maintain(engine)
    rows = magnets.execute('select * from log.magnets order by "time"').fetchall()
    later = monday + 6 * WEEK
    assert len(maintain(engine, later).set_aside) == 5
    assert times(magnets) == []
    # a row comes again, another one for the first time, and the facility has another column
    put(magnets, before[0], 0.0)
    put(magnets, before[0] + HOUR, 7.0)
    more = Column("more", "magnets/more", "real")
    install(engine, facility(30, more))
    lines = [*restore(magnets.info.dsn, "magnets", monday - 2 * WEEK, monday + WEEK)]
    assert [line.split(",")[0] for line in lines] == [
        f"restored log.{Week(monday + n * WEEK).partition('magnets')}" for n in (-2, -1, 0)
    ]
    assert lines[0].endswith(", 1 rows had arrived for it")
    after = magnets.execute(
        'select seq_no, "time", current, "on", state from log.magnets order by "time"'
    ).fetchall()
    assert [row for row in after if row[2] != 7.0] == rows
    assert len(after) == 4
    assert magnets.execute("select count(*) from log.magnets_default").fetchone() == (0,)
    # the weeks after these are still set aside
    assert magnets.execute("select until from ringlog.dropped").fetchone() == (monday + 3 * WEEK,)
    assert maintain(engine, later).set_aside == ()
    assert [*restore(magnets.info.dsn, "magnets", monday - 2 * WEEK, monday + WEEK)] == []


def test_a_week_past_retention_is_not_restored(engine: sa.Engine, magnets: psycopg.Connection) -> None:
    monday = Week.of(NOW - 5 * WEEK).start
    put(magnets, monday + HOUR)
    magnets.execute("select ringlog.make_week('magnets', %s, %s)", [monday, monday])
    assert maintain(engine).set_aside == (Week(monday).partition("magnets"),)
    with pytest.raises(PastRetention, match=r"past the retention of magnets \(3 weeks\)"):
        [*restore(magnets.info.dsn, "magnets", monday, monday + WEEK)]
