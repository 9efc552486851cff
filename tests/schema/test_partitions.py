"""The weeks of the logs: created ahead, filled from the default partition, dropped past retention."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import change
from ringlog.schema.facility import Column, Facility, Retention
from ringlog.schema.installing.install import InstallRefused, install
from ringlog.schema.layout import EARLIEST
from ringlog.schema.relations.partitions import ENOUGH, LATELY, MaintenanceReport, Week, maintain
from ringlog.schema.relations.statistics import turn_off_near
from waiting import wait_until

from .conftest import WITH_STATISTICS, Connect, Databases, FacilityDatabases, at, magnets_facility, rows
from .installing.snapshot import snapshot

WEEK = timedelta(weeks=1)
NOW = datetime.now(UTC)
KEEPING = MaintenanceReport((), {}, (), (), (), {})  # nothing


def week(number: int) -> str:
    """The partition of the week this many weeks after the present one."""
    return Week.of(NOW + number * WEEK).partition("magnets")


def put(connection: psycopg.Connection, time: datetime | str, current: float = 1.0) -> None:
    call = "select ringlog.put_magnets(row (1, %s, %s, true, '')::online.magnets)"
    connection.execute(call, [time, current])


def partitions(connection: psycopg.Connection) -> list[str]:
    found = rows(
        connection,
        "select relname from pg_inherits join pg_class on oid = inhrelid"
        " where inhparent = 'weeks.magnets'::regclass order by relname",
    )
    return [name for (name,) in found]


def places(connection: psycopg.Connection) -> list[tuple[datetime, str]]:
    """Time and partition of each row of the log."""
    return rows(
        connection,
        'select "time", relname from weeks.magnets as l join pg_class on pg_class.oid = l.tableoid'
        " order by 1",
    )


def keeping(retention: Retention | None) -> Facility:
    facility = magnets_facility()
    return replace(facility, tables=(replace(facility.tables[0], retention=retention),))


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, prepared_databases: Databases, facility_databases: FacilityDatabases
) -> Iterator[sa.URL]:
    """With `magnets` the log is kept for ten weeks; else there are no tables."""
    kept = "magnets" in request.fixturenames
    with facility_databases(keeping(Retention(10, "week"))) if kept else prepared_databases() as url:
        yield url


@pytest.fixture
def magnets(connect: Connect) -> psycopg.Connection:
    return connect()


# --- weeks ---


@pytest.mark.parametrize(
    ("moment", "start", "partition"),
    [
        ("2026-03-02 00:00:00+00:00", "2026-03-02", "t_2026w10"),
        ("2026-03-08 23:59:59.999999+00:00", "2026-03-02", "t_2026w10"),
        ("2026-03-02 08:59:59+09:00", "2026-02-23", "t_2026w09"),
        ("2027-01-01 12:00:00+00:00", "2026-12-28", "t_2026w53"),
        ("2024-12-30 00:00:00+00:00", "2024-12-30", "t_2025w01"),
    ],
)
def test_a_week_is_from_monday_to_monday(moment: str, start: str, partition: str) -> None:
    week = Week.of(datetime.fromisoformat(moment))
    assert (week.start, week.end) == (at(start), at(start) + WEEK)
    assert week.partition("t") == partition


# --- made ahead ---


def test_an_installation_makes_this_week_and_four_more(magnets: psycopg.Connection) -> None:
    assert partitions(magnets) == [*(week(number) for number in range(5)), "magnets_default"]


def test_nothing_to_do(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    put(magnets, NOW)
    maintain(engine)  # which notes the clock
    before = snapshot(magnets)
    report = maintain(engine)
    assert not report
    assert report == KEEPING
    assert str(report) == "weeks: the coming ones exist, none is past retention"
    after = snapshot(magnets)
    del before["ringlog.housekeeping"], after["ringlog.housekeeping"]
    assert after == before


def test_the_clock_moves_on(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    assert maintain(engine, NOW + WEEK) == replace(KEEPING, made=(week(5),))
    assert maintain(engine, NOW + WEEK) == KEEPING
    report = maintain(engine, NOW + 8 * WEEK)
    assert report == replace(KEEPING, made=tuple(week(number) for number in range(8, 13)))
    assert f"made log.{week(8)}" in str(report)
    put(magnets, NOW + 12 * WEEK)
    assert places(magnets) == [(NOW + 12 * WEEK, week(12))]


def test_partitions_have_the_owner_and_the_key(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    maintain(engine, NOW + WEEK)
    assert rows(
        magnets,
        "select relowner::regrole::text, pg_get_constraintdef(pg_constraint.oid) from pg_class"
        " join pg_constraint on conrelid = pg_class.oid and contype = 'p' where relname = %s",
        week(5),
    ) == [("ringlog_owner", 'PRIMARY KEY ("time", seq_no)')]


def test_only_the_keys_of_a_log_have_statistics(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    """Those of a new log's partitions are turned off after its installation, of a week when it is near."""
    keys = [("seq_no",), ("time",)]
    maintain(engine, NOW + WEEK)
    assert not [*turn_off_near(engine, Week.of(NOW).start)]
    assert [
        name for name in ("magnets", *partitions(magnets)) if rows(magnets, WITH_STATISTICS, [name]) != keys
    ] == [week(1), week(2), week(3), week(4)]
    assert not [*turn_off_near(engine, Week.of(NOW + 4 * WEEK).start - timedelta(hours=23))]
    assert all(rows(magnets, WITH_STATISTICS, [name]) == keys for name in ("magnets", *partitions(magnets)))
    for number in range(6):
        put(magnets, NOW + number * WEEK)
    facility = magnets_facility()
    table = facility.tables[0]
    columns = (*table.columns, Column("late", "magnets/late", "real"))
    install(engine, replace(facility, tables=(replace(table, columns=columns),)))
    magnets.execute("analyze")
    kept = rows(
        magnets,
        "select distinct relname, attname from pg_statistic join pg_class on pg_class.oid = starelid"
        " join pg_attribute on attrelid = starelid and attnum = staattnum"
        " where relname like 'magnets\\_2%' order by 1, 2",
    )
    assert kept == [(week(number), key) for number in range(6) for key in ("seq_no", "time")]


def test_the_gateway_reads_no_catalogue_for_a_week(
    magnets: psycopg.Connection, engine: sa.Engine, connect: Connect
) -> None:
    """Weeks are not procedures: the gateway would renew its connections to PostgreSQL each time, for each
    table."""
    listener = connect()
    listener.execute("listen ringlog_catalogue")
    assert maintain(engine, NOW + WEEK).made
    listener.execute("notify ringlog_catalogue, 'last'")
    assert [notice.payload for notice in listener.notifies(timeout=100, stop_after=1)] == ["last"]


def test_a_clock_without_a_zone_is_refused(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    before = snapshot(magnets)
    with pytest.raises(ValueError, match="now must have a time zone: 2026-03-02 00:00:00"):
        maintain(engine, datetime(2026, 3, 2))
    assert snapshot(magnets) == before


# --- the default partition ---


def test_a_row_moves_when_its_week_is_made(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    early = [NOW + 6 * WEEK, NOW + 6 * WEEK + timedelta(seconds=1)]
    for time in early:
        put(magnets, time)
    assert places(magnets) == [(time, "magnets_default") for time in early]
    assert maintain(engine) == replace(KEEPING, kept={"magnets": 2})
    report = maintain(engine, NOW + 2 * WEEK)
    assert report == replace(KEEPING, made=(week(5), week(6)), moved={week(6): 2})
    assert f"moved 2 rows to log.{week(6)}" in str(report)
    assert places(magnets) == [(time, week(6)) for time in early]
    put(magnets, early[0])  # a repeat is still absorbed
    assert len(places(magnets)) == 2


def test_late_rows_get_their_past_weeks(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    late = [NOW - 9 * WEEK, NOW - 3 * WEEK]
    for time in late:
        put(magnets, time)
    report = maintain(engine)
    assert report == replace(KEEPING, made=(week(-9), week(-3)), moved={week(-9): 1, week(-3): 1})
    assert places(magnets) == [(late[0], week(-9)), (late[1], week(-3))]


def test_the_bounds_of_a_week(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    start = Week.of(NOW - 3 * WEEK).start
    microsecond = timedelta(microseconds=1)
    for time in (start - microsecond, start, start + WEEK - microsecond, start + WEEK):
        put(magnets, time)
    maintain(engine)
    assert [name for _, name in places(magnets)] == [week(-4), week(-3), week(-3), week(-2)]


def test_rows_that_may_be_wrong_are_kept(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    for time in (
        "4713-01-01 00:00:00 BC",
        "1900-01-01 00:00:00+00",
        "1970-01-04 23:59:59.999999+00",
        NOW - 12 * WEEK,
        NOW + 5 * WEEK,
        "2999-01-01",
        "294276-12-31 23:59:59+00",
    ):
        put(magnets, time)
    report = maintain(engine)
    assert report == replace(KEEPING, kept={"magnets": 7})
    assert str(report) == "kept 7 rows outside every week in log.magnets_default"
    assert rows(magnets, "select count(*) from log.magnets_default") == [(7,)]


# --- retention ---


def test_weeks_past_retention_are_set_aside(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    times = [Week.of(NOW + number * WEEK).start for number in range(-9, 5)]
    for time in times:
        put(magnets, time)
    maintain(engine)
    this_week = Week.of(NOW)
    # ten weeks from the last moment that keeps the week before this one
    assert maintain(engine, this_week.start + 10 * WEEK - timedelta(seconds=1)).set_aside == tuple(
        week(number) for number in range(-9, -1)
    )
    report = maintain(engine, this_week.start + 10 * WEEK)
    assert report.set_aside == (week(-1),)
    assert f"set aside log.{week(-1)}: past retention" in str(report)
    assert [time for time, _ in places(magnets)] == times[9:]
    assert maintain(engine, this_week.start + 10 * WEEK) == KEEPING
    assert rows(magnets, f'select count("time") from set_aside.{week(-1)}') == [(1,)]
    report = maintain(engine, this_week.start + 13 * WEEK)
    assert report.dropped == tuple(week(number) for number in range(-9, 0))
    assert f"dropped log.{week(-1)}" in str(report)
    left = rows(magnets, "select relation from ringlog.set_aside order by begins")
    assert left == [(week(number),) for number in range(0, 3)]


def test_weeks_are_dropped_at_once(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    install(engine, replace(keeping(Retention(10, "week")), keep_dropped=None))
    put(magnets, NOW)
    assert maintain(engine, Week.of(NOW).end + 10 * WEEK).dropped == (week(0),)
    assert rows(magnets, "select count(*) from ringlog.set_aside") == [(0,)]


def test_without_retention_nothing_is_dropped(engine: sa.Engine, connect: Connect) -> None:
    install(engine, keeping(None))
    connection = connect()
    for first in (EARLIEST, at("1997-03-25 12:00:00"), NOW):
        for number in range(ENOUGH):
            put(connection, first + timedelta(seconds=number))
    assert maintain(engine).made == ("magnets_1970w02", "magnets_1997w13")
    assert maintain(engine, NOW + timedelta(days=36500)).set_aside == ()
    assert len(places(connection)) == 3 * ENOUGH


def test_records_for_why_are_kept_as_long_as_the_weeks(engine: sa.Engine, connect: Connect) -> None:
    """Events, former writers, settings and dropped samples; those of set-aside weeks may still be needed."""
    install(engine, keeping(None))
    connection = connect()
    put(connection, NOW - 9 * WEEK)
    maintain(engine)
    oldest, second = Week.of(NOW - 9 * WEEK).start, timedelta(seconds=1)
    ends = [oldest - second, oldest, Week.of(NOW - 2 * WEEK).start]
    connection.execute("delete from ringlog.how_taken")
    for end in ends:
        for statement in (
            "insert into ringlog.writer_run values ('magnets', %s, 'host:1', %s, true)",
            "insert into ringlog.event (spool, number, table_name, time, until, kind, message)"
            " select 'spool', count(*), 'magnets', %s, %s, 'gap', '' from ringlog.event",
            "insert into ringlog.dropped_sample values (1, 'magnets', %s, 'clock', now(), %s, 3)",
            "insert into ringlog.how_taken values ('magnets', %s + interval '1 second', 1, 1, %s)",
        ):
            connection.execute(statement, [end, end])

    def left(now: datetime) -> list[list[datetime]]:
        maintain(engine, now)
        return [
            [time for (time,) in rows(connection, f"select {column} from ringlog.{table} order by 1")]
            for table, column in (
                ("writer_run", "until"),
                ("dropped_sample", "until"),
                ("event where until is not null", "until"),
                ("how_taken", "valid_from - interval '1 second'"),
            )
        ]

    lost = (
        "insert into ringlog.event (spool, number, table_name, time, kind, message)"
        " select 'lost', count(*), 'magnets', %s, 'disconnected', 'magnet/current' from ringlog.event"
    )
    for end in ends[:2]:
        connection.execute(lost, [end - second])
    assert left(NOW + 100 * WEEK) == [ends] * 4
    install(engine, keeping(Retention(10, "week")))
    connection.execute("delete from ringlog.how_taken where settings not like '2%'")
    # the settings of the begin of a time are those before it
    assert left(NOW + 5 * WEEK) == [ends[1:], ends[1:], ends[1:], ends[0:]]
    assert left(NOW + 8 * WEEK) == [ends[2:], ends[2:], ends[2:], ends[1:]]
    # the signal may still be lost
    kept = rows(connection, "select time from ringlog.event where kind = 'disconnected'")
    assert kept == [(ends[1] - second,)]


def test_a_device_with_random_times_creates_no_weeks(engine: sa.Engine, connect: Connect) -> None:
    install(engine, keeping(None))
    connection = connect()
    for number in range(300):
        put(connection, EARLIEST + number * 9 * WEEK)
    far = sum(EARLIEST + number * 9 * WEEK < NOW - LATELY for number in range(300))
    report = maintain(engine)
    assert report.kept == {"magnets": far}
    assert len(report.made) == 300 - far - sum(EARLIEST + number * 9 * WEEK > NOW for number in range(300))


def test_the_report_lists_the_created_objects(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    """Another process, or an import, creates a week meanwhile."""
    put(magnets, NOW - 3 * WEEK)
    made = rows(magnets, "select ringlog.make_week('magnets', %s)", Week.of(NOW - 3 * WEEK).start)
    assert made == [(1,)]
    assert maintain(engine) == KEEPING


def test_retention_follows_the_present_facility_file(engine: sa.Engine, connect: Connect) -> None:
    install(engine, keeping(None))
    put(connect(), NOW - 20 * WEEK)
    maintain(engine)
    magnets = connect()
    with pytest.raises(InstallRefused) as refused:
        install(engine, keeping(Retention(3, "month")))
    (obstacle,) = refused.value.obstacles
    monday = f"{Week.of(NOW - 20 * WEEK).start:%Gw%V}"
    assert obstacle.what == (
        "table magnets: its log is kept for ever and the facility file has 3 months; this drops the week"
        f" {monday} with about 1 rows"
    )
    assert maintain(engine).set_aside == ()
    magnets.execute(obstacle.sql.encode())
    install(engine, keeping(Retention(3, "month")))
    assert maintain(engine).set_aside == (week(-20),)
    # a change that drops nothing needs no decision
    install(engine, keeping(Retention(2, "month")))


# --- beside writers and readers ---


def test_writers_continue(magnets: psycopg.Connection, engine: sa.Engine, connect: Connect) -> None:
    """Rows keep arriving for the weeks that are being created; each is stored once, none is refused."""
    stop, sent = threading.Event(), [list[datetime](), list[datetime]()]
    errors: list[Exception] = []

    def write(connection: psycopg.Connection, times: list[datetime], seconds: int) -> None:
        try:
            while not stop.is_set():
                number = len(times)
                time = NOW + (number % 10 - 9) * WEEK + timedelta(seconds=2 * number + seconds)
                put(connection, time, number)
                times.append(time)
        except Exception as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(connect(), times, n)) for n, times in enumerate(sent)]
    for writer in writers:
        writer.start()
    while min(len(times) for times in sent) < 100 and not errors:
        stop.wait(0.01)
    report = maintain(engine)
    while min(len(times) for times in sent) < 400 and not errors:
        stop.wait(0.01)
    stop.set()
    for writer in writers:
        writer.join()
    assert errors == []
    assert report.postponed == ()
    assert report.made == tuple(week(number) for number in range(-9, 0))
    assert sorted(sent[0] + sent[1]) == [time for time, _ in places(magnets)]
    assert {name for _, name in places(magnets)} <= {week(number) for number in range(-9, 2)}


def test_a_reader_sees_rows_that_are_moving(
    magnets: psycopg.Connection, connect: Connect, engine: sa.Engine
) -> None:
    """A reader's plan names the partitions of its start."""
    put(magnets, NOW - 3 * WEEK)
    mover, reader = connect(), connect()
    mover.autocommit = False
    mover.execute("select ringlog.make_week('magnets', %s)", [Week.of(NOW - 3 * WEEK).start])

    def waits() -> bool:
        query = "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
        return magnets.execute(query, [reader.info.backend_pid]).rowcount == 1

    with ThreadPoolExecutor(1) as thread, mover:
        read = thread.submit(rows, reader, 'select "time" from log.magnets')
        wait_until(waits)
        mover.commit()
        assert read.result() == [(NOW - 3 * WEEK,)]
    assert places(magnets) == [(NOW - 3 * WEEK, week(-3))]


def test_two_runs_at_once(magnets: psycopg.Connection, database_url: sa.URL) -> None:
    put(magnets, NOW - 3 * WEEK)

    def run(_: int) -> MaintenanceReport:
        engine = sa.create_engine(database_url)
        report = maintain(engine, NOW + WEEK)
        engine.dispose()
        return report

    with ThreadPoolExecutor() as threads:
        first, second = threads.map(run, range(2))
    assert {first.made, second.made} == {(week(-3), week(5)), ()}
    assert places(magnets) == [(NOW - 3 * WEEK, week(-3))]


@pytest.fixture
def other(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> psycopg.Connection:
    """A session in a transaction, for whose locks nobody waits."""
    monkeypatch.setattr(change, "PATIENCE", 0.0)
    connection = connect()
    connection.autocommit = False
    return connection


def test_work_on_a_locked_table_is_postponed(
    magnets: psycopg.Connection, engine: sa.Engine, other: psycopg.Connection
) -> None:
    put(other, NOW)
    report = maintain(engine, NOW + WEEK)
    assert report == replace(KEEPING, postponed=(week(5),))
    assert str(report) == f"postponed log.{week(5)}: its table is in use"
    assert week(5) not in partitions(magnets)
    report = maintain(engine, Week.of(NOW).end + 10 * WEEK)
    assert week(0) in report.postponed
    other.commit()
    assert maintain(engine, NOW + WEEK) == replace(KEEPING, made=(week(5),))


def test_statistics_of_a_locked_log_are_turned_off_later(
    magnets: psycopg.Connection, engine: sa.Engine, other: psycopg.Connection
) -> None:
    other.execute(sql.SQL("lock table log.{} in share mode").format(sql.Identifier(week(0))))
    assert [*turn_off_near(engine)] == [
        "statistics of log.magnets: the table is in use, they are turned off later"
    ]
    other.commit()
    assert not [*turn_off_near(engine)]
    assert rows(magnets, WITH_STATISTICS, [week(0)]) == [("seq_no",), ("time",)]


def test_a_failing_week_does_not_prevent_others(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    magnets.execute(sql.SQL("create table log.{} (a int)").format(sql.Identifier(week(5))))
    report = maintain(engine, NOW + 2 * WEEK)
    assert report.made == (week(6),)
    assert [line.split(": ")[0] for line in report.failed] == [f"failed at log.{week(5)}"]
    assert f'relation "{week(5)}" already exists' in str(report)


def test_a_partition_created_by_hand_is_left_alone(magnets: psycopg.Connection, engine: sa.Engine) -> None:
    """For example history in partitions by year."""
    magnets.execute(
        "create table log.magnets_years partition of weeks.magnets"
        " for values from ('1997-01-01') to ('2020-01-01')"
    )
    put(magnets, at("2019-06-01"))
    install(engine, keeping(None))
    assert maintain(engine) == KEEPING
    assert places(magnets) == [(at("2019-06-01"), "magnets_years")]


def test_several_tables(engine: sa.Engine, connect: Connect) -> None:
    (table,) = magnets_facility().tables
    columns = tuple(replace(column, signal=f"other/{column.name}") for column in table.columns)
    other = replace(table, name="other", columns=columns)
    install(engine, Facility("test", "UTC", (table, other)))
    put(connect(), NOW - 3 * WEEK)
    report = maintain(engine, NOW + WEEK)
    assert report.made == (week(-3), week(5), Week.of(NOW + 5 * WEEK).partition("other"))
