"""Summaries agree with the rows, for all late rows and killed processes."""

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.history.summaries import making_spans
from ringlog.history.summaries import summarising as summaries
from ringlog.history.summaries.summarising import Turn, summarise
from ringlog.history.verification import problems_of
from ringlog.schema import locks
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from ringlog.schema.installing.obstacles import InstallRefused
from ringlog.schema.relations.partitions import maintain
from waiting import wait_until

from .conftest import Databases, template

BEGIN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW = BEGIN + timedelta(days=3)
SCHEMAS = {10: "ten_seconds", 60: "minute", 600: "ten_minutes", 3600: "hour", 86_400: "day"}

COLUMNS = (
    Column("current", "magnet/current", "real"),
    Column("field", "magnet/field", "double"),
    Column("steps", "magnet/steps", "int"),
    Column("on", "magnet/on", "bit"),
    Column("state", "magnet/state", "varchar(8)"),
)

TABLE = Table("magnets", 10, 1.0, COLUMNS, summaries=tuple(SCHEMAS))


@pytest.fixture(scope="module")
def filled(prepared_databases: Databases) -> Iterator[str]:
    """Rows every 13 s for two days, with nulls, NaN and hours without any."""
    facility = Facility("test", "UTC", (TABLE,))
    with template(prepared_databases, facility, lambda _, opened: fill(opened, BEGIN, 13_000)) as name:
        yield name


@pytest.fixture
def magnets(filled: str, conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


NUMBER = dict.fromkeys(("current", "field", "steps"), "{}::double precision")
NUMBER["on"] = "{}::integer::double precision"


def fill(connection: psycopg.Connection, begin: datetime, rows: int) -> None:
    connection.execute(
        """
        insert into weeks.magnets (seq_no, time, current, field, steps, "on", state)
        select
          1,
          %s + n * interval '13 seconds',
          case when n %% 7 = 0 then null when n %% 11 = 0 then 'NaN' else sin(n) * 100 end,
          case when n %% 3000 < 1000 then 'NaN' else 1e9 + cos(n) end,
          case when n %% 3000 > 2000 then null else n end,
          n %% 5 = 0,
          'text'
        from generate_series(1, %s) as n
        where n %% 3000 < 2500
        """,
        [begin, rows],
    )


def put(connection: psycopg.Connection, moment: datetime, current: float | None) -> None:
    connection.execute(
        "select ringlog.put_magnets(row (2, %s, %s, 1, 2, true, 'x')::online.magnets)", [moment, current]
    )


def summaries_of(connection: psycopg.Connection, level: int, column: str) -> list[tuple[object, ...]]:
    return connection.execute(
        sql.SQL(
            "select time, n, min, max, mean, first, last, std, nans, nulls from {}.magnets"
            " where column_name = %s order by time"
        ).format(sql.Identifier(SCHEMAS[level])),
        [column],
    ).fetchall()


def test_a_row_past_retention_leaves_the_summaries_of_expired_rows(
    magnets: psycopg.Connection, engine: sa.Engine, conninfo: str
) -> None:
    maintain(engine, NOW)
    summarise(conninfo, NOW)
    before = {level: summaries_of(magnets, level, "current") for level in SCHEMAS}
    magnets.execute("update ringlog.logged_table set retention = '7 days'")
    later = NOW + timedelta(days=60)
    maintain(engine, later)
    assert magnets.execute("select count(*) from weeks.magnets").fetchone() == (0,)
    put(magnets, BEGIN + timedelta(seconds=14), 1e9)
    summarise(conninfo, later)
    assert {level: summaries_of(magnets, level, "current") for level in SCHEMAS} == before
    # one that is the first of its day has its summary
    put(magnets, BEGIN - timedelta(days=1), 5.0)
    summarise(conninfo, later)
    assert len(summaries_of(magnets, 86_400, "current")) == len(before[86_400]) + 1
    # a longer retention does not restore the rows: late ones have a week again, and leave the summaries
    # unchanged
    before = {level: summaries_of(magnets, level, "current") for level in SCHEMAS}
    magnets.execute("update ringlog.logged_table set retention = null")
    put(magnets, BEGIN + timedelta(seconds=15), 1e9)
    assert maintain(engine, later).made
    put(magnets, BEGIN + timedelta(seconds=16), 1e9)
    summarise(conninfo, later)
    assert {level: summaries_of(magnets, level, "current") for level in SCHEMAS} == before
    assert [*problems_of(magnets)] == []


def figures_of_rows(
    connection: psycopg.Connection, level: int, column: str, end: datetime
) -> list[tuple[object, ...]]:
    """The same by PostgreSQL's own aggregates, for finished spans."""
    return connection.execute(
        sql.SQL(
            """
            with value as (
              select date_bin(%(level)s * interval '1 second', time, 'epoch') as span, time, {value} as value
              from weeks.magnets
            ), with_number as (
              select *, case when value <> 'NaN' then value end as number from value
            )
            select
              span,
              count(number),
              min(number),
              max(number),
              avg(number),
              (array_agg(number order by time) filter (where number is not null))[1],
              (array_agg(number order by time desc) filter (where number is not null))[1],
              stddev_pop(number),
              count(*) filter (where value = 'NaN'),
              count(*) filter (where value is null)
            from with_number
            where span + %(level)s * interval '1 second' <= %(end)s
            group by span order by span
            """
        ).format(value=sql.SQL(NUMBER[column]).format(sql.Identifier(column))),
        {"level": level, "end": end},
    ).fetchall()


def agree(connection: psycopg.Connection, levels: tuple[int, ...]) -> None:
    """Asserts that all summaries agree with the rows."""
    (until,) = connection.execute("select until from ringlog.summarised").fetchone() or (None,)
    for level in levels:
        for column in ("current", "field", "steps", "on"):
            made = summaries_of(connection, level, column)
            expected = figures_of_rows(connection, level, column, until)
            assert len(made) == len(expected) > 0, (level, column)
            for here, there in zip(made, expected, strict=True):
                for one, other in zip(here, there, strict=True):
                    if isinstance(other, float):
                        assert isinstance(one, float)
                        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=2e-6), (
                            level,
                            column,
                            here,
                            there,
                        )
                    else:
                        assert one == other, (level, column, here, there)


def test_summaries_agree_with_the_rows(magnets: psycopg.Connection, conninfo: str) -> None:
    assert summarise(conninfo, NOW) == {"magnets": 11_000}
    agree(magnets, (10, 60, 600, 3600, 86_400))
    assert summarise(conninfo, NOW) == {}


def test_many_rounds_have_the_result_of_one(magnets: psycopg.Connection, conninfo: str) -> None:
    for hours in range(1, 72, 5):
        summarise(conninfo, BEGIN + timedelta(hours=hours), enough=1)
    many = [summaries_of(magnets, level, "current") for level in SCHEMAS]
    magnets.execute("truncate summary.magnets")
    magnets.execute("update ringlog.summarised set until = null")
    summarise(conninfo, BEGIN + timedelta(hours=71), enough=1)
    assert [summaries_of(magnets, level, "current") for level in SCHEMAS] == many


def test_a_late_row_is_summarised(magnets: psycopg.Connection, conninfo: str) -> None:
    summarise(conninfo, NOW)
    put(magnets, BEGIN + timedelta(hours=5, microseconds=1), 1e6)
    put(magnets, BEGIN + timedelta(hours=40, microseconds=1), -1e6)
    put(magnets, BEGIN - timedelta(hours=100), None)
    assert summarise(conninfo, NOW)
    agree(magnets, (3600, 86_400))
    assert magnets.execute("select count(*) from ringlog.summary_mark").fetchone() == (0,)
    # the same row again changes nothing, and so marks nothing
    put(magnets, BEGIN + timedelta(hours=5, microseconds=1), 1e6)
    assert magnets.execute("select count(*) from ringlog.summary_mark").fetchone() == (0,)


def test_the_round_waits_for_uncommitted_rows(
    magnets: psycopg.Connection,
    conninfo: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A put that read the state before the summaries advanced, and commits afterwards, is in them."""
    moment = BEGIN + timedelta(hours=30, microseconds=1)
    with psycopg.connect(conninfo) as other:
        put(other, moment, 1e6)
        monkeypatch.setattr(summaries, "PATIENCE", 0.05)
        assert summarise(conninfo, NOW) == {}
        process = other.info.backend_pid
        assert f"summaries of magnets are not made yet: process {process} of PostgreSQL has" in caplog.text
        monkeypatch.setattr(summaries, "PATIENCE", 60.0)
        thread = threading.Thread(target=summarise, args=(conninfo, NOW))
        thread.start()
        # rows from now on are marked; the round waits for earlier ones
        while magnets.execute("select last_value from summary.magnets_until").fetchone() == (0,):
            time.sleep(0.01)
        assert thread.is_alive()
        other.commit()
        thread.join()
    agree(magnets, (86_400,))
    assert max(row[3] for row in summaries_of(magnets, 86_400, "current")) == 1e6  # type: ignore[type-var]


def test_a_column_becomes_wider_while_a_round_waits(
    magnets: psycopg.Connection, engine: sa.Engine, conninfo: str
) -> None:
    """The first four bytes of a double precision are a real of another value."""
    wider = (replace(COLUMNS[0], type="double"), *COLUMNS[1:])
    with pytest.raises(InstallRefused) as refused:
        install(engine, Facility("test", "UTC", (replace(TABLE, columns=wider),)))
    waits = "select count(*) from pg_locks where relation = 'ringlog.one_change'::regclass and not granted"
    awaited = threading.Thread(target=summarise, args=(conninfo, NOW))
    with psycopg.connect(conninfo) as other:
        other.execute(locks.statement(locks.CHANGES))
        awaited.start()
        wait_until(lambda: magnets.execute(waits).fetchone() == (1,))
        for obstacle in refused.value.obstacles:
            other.execute(obstacle.sql.encode())
        other.commit()
    awaited.join()
    agree(magnets, (86_400,))


def test_the_round_waits_for_another_process(magnets: psycopg.Connection, conninfo: str) -> None:
    """So that `ringlog archive now` finds its weeks summarised also while the server makes summaries."""
    made: dict[str, int] = {}
    awaited = threading.Thread(target=lambda: made.update(summarise(conninfo, NOW)))
    waits = "select count(*) from pg_locks where relation = 'ringlog.one_summary'::regclass and not granted"
    with psycopg.connect(conninfo) as other:
        other.execute(locks.statement(locks.SUMMARIES))
        assert summarise(conninfo, NOW, turn=Turn.SKIPPED) == {}
        awaited.start()
        wait_until(lambda: magnets.execute(waits).fetchone() == (1,))
        assert not made
        other.commit()
        awaited.join()
        assert made == {"magnets": 11_000}
        put(magnets, BEGIN + timedelta(hours=1, microseconds=1), 7.0)
        other.execute(locks.statement(locks.SUMMARIES))
        assert summarise(conninfo, NOW, turn=Turn.HELD)["magnets"] > 0
    agree(magnets, (3600,))


def test_after_kills_no_row_is_repeated_or_missing(
    magnets: psycopg.Connection, conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "VALUES", 4_000)
    made = summaries._make
    for calls in range(5):
        left = iter(range(calls, -1, -1))

        def make(connection: psycopg.Connection, *rest: object, left: Iterator[int] = left) -> int:
            rows = made(connection, *rest)  # type: ignore[arg-type]
            if next(left) == 0:
                connection.close()
            return rows

        monkeypatch.setattr(summaries, "_make", make)
        put(magnets, BEGIN + timedelta(hours=1, microseconds=calls), 7.0)
        with pytest.raises(psycopg.OperationalError):
            summarise(conninfo, NOW)
    monkeypatch.setattr(summaries, "_make", made)
    summarise(conninfo, NOW)
    agree(magnets, (3600,))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Queries for rows of the log."""
    read = making_spans._of_the_log
    made: list[object] = []

    def counted(*what: object) -> object:
        made.append(what)
        return read(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(making_spans, "_of_the_log", counted)
    return made


def test_years_between_two_rows(magnets: psycopg.Connection, conninfo: str, reads: list[object]) -> None:
    put(magnets, BEGIN - timedelta(days=3000), 5.0)
    put(magnets, datetime(1900, 1, 1, tzinfo=UTC), 5.0)
    summarise(conninfo, NOW)
    assert len(reads) < 10, "it looks for rows where there are none"
    first = summaries_of(magnets, 86_400, "current")[0]
    assert first[1:3] == (1, 5.0)


def test_only_tables_with_rows_to_summarise_are_read(
    magnets: psycopg.Connection, engine: sa.Engine, conninfo: str
) -> None:
    full = Table("magnets", 10, 1.0, COLUMNS, summaries=tuple(SCHEMAS))
    empty = Table("empty", 10, 1.0, (Column("current", "empty/current", "real"),), summaries=(10,))
    install(engine, Facility("test", "UTC", (full, empty)))

    def looked_at(now: datetime) -> list[str]:
        found, same = (
            [name for name, *_ in summaries._due(magnets, now, summaries.ENOUGH, may_look)]
            for may_look in (True, False)
        )
        assert found == same
        return found

    assert looked_at(NOW) == ["magnets"]
    summarise(conninfo, NOW)
    assert looked_at(NOW) == []
    put(magnets, BEGIN + timedelta(hours=20, microseconds=1), 7.0)
    assert looked_at(NOW) == ["magnets"]
    summarise(conninfo, NOW)
    assert looked_at(NOW) == []
    assert looked_at(NOW + timedelta(seconds=200)) == ["magnets"]
    magnets.execute("insert into weeks.empty (seq_no, time) values (1, %s)", [NOW])
    assert looked_at(NOW) == ["empty"]


def test_many_late_rows_are_read_together(
    magnets: psycopg.Connection, conninfo: str, reads: list[object]
) -> None:
    """Like rows of an import: each in a span of its own, with others between them."""
    summarise(conninfo, NOW)
    reads.clear()
    for minute in range(100):
        put(magnets, BEGIN + timedelta(hours=20, minutes=minute, microseconds=1), float(minute))
    assert summarise(conninfo, NOW)
    assert len(reads) == 1
    agree(magnets, (10, 3600))


def test_late_rows_far_from_each_other_are_read_together(
    magnets: psycopg.Connection, conninfo: str, reads: list[object]
) -> None:
    summarise(conninfo, NOW)
    reads.clear()
    for hour in range(45):
        put(magnets, BEGIN + timedelta(hours=hour, microseconds=1), float(hour))
    assert summarise(conninfo, NOW)
    assert len(reads) == 1
    agree(magnets, (10, 3600, 86_400))


def test_rows_move_to_their_week_before_or_after(
    magnets: psycopg.Connection, conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot from before a move would find the rows in neither partition."""
    monday = BEGIN - timedelta(days=BEGIN.weekday(), weeks=8)
    monday = monday.replace(hour=0, minute=0, second=0, microsecond=0)
    summarise(conninfo, NOW)
    for minute in range(50):
        put(magnets, monday + timedelta(hours=10, minutes=minute), float(minute))
    read = making_spans._of_the_log
    refused = []

    def read_beside_a_move(*what: object) -> object:
        with pytest.raises(psycopg.errors.LockNotAvailable) as error:
            magnets.execute("select ringlog.make_week('magnets', %s)", [monday])
        refused.append(error)
        return read(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(making_spans, "_of_the_log", read_beside_a_move)
    summarise(conninfo, NOW)
    assert refused
    monkeypatch.undo()
    assert magnets.execute("select ringlog.make_week('magnets', %s)", [monday]).fetchone() == (50,)
    for _ in range(2):
        agree(magnets, (3600,))
        assert [row[1] for row in summaries_of(magnets, 3600, "current")[:1]] == [50]
        summarise(conninfo, NOW)
    assert magnets.execute("select count(*) from ringlog.summary_mark").fetchone() == (0,)


@pytest.mark.long
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_in_a_zone_with_summer_time(engine: sa.Engine, conninfo: str, zone: str) -> None:
    """Sessions of the database have the facility's zone. Blocks of summaries begin in the hour that occurs
    twice in autumn, and rounds in the missing hour of spring."""
    table = Table("magnets", 10, 1.0, COLUMNS, summaries=tuple(SCHEMAS))
    install(engine, Facility("test", zone, (table,)))
    engine.dispose()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        assert connection.info.parameter_status("TimeZone") == zone
        changes = [datetime(2025, 10, 26, tzinfo=UTC), datetime(2025, 11, 2, tzinfo=UTC)]
        changes += [datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC)]
        for change in changes:
            fill(connection, change, 2500)
            for hours in (0.5, 1.25, 1.75, 6.5, 7.5, 12):
                now = change + timedelta(hours=hours)
                summarise(conninfo, now.astimezone(ZoneInfo(zone)), enough=1)
            agree(connection, (10, 60, 600, 3600))
            (until,) = connection.execute("select until from ringlog.summarised").fetchone() or (None,)
            assert until == change + timedelta(hours=12, seconds=-10)


def test_clocks_that_are_thousands_of_years_ahead(magnets: psycopg.Connection, conninfo: str) -> None:
    """Python cannot represent years after 9999."""
    for year in (9998, 20_000):
        magnets.execute(
            "insert into weeks.magnets (seq_no, time) values (3, make_timestamptz(%s, 1, 1, 0, 0, 0))", [year]
        )
    summarise(conninfo, NOW)
    agree(magnets, (3600,))
    # with no rows but those of future years after the summaries
    assert summarise(conninfo, NOW + timedelta(days=9)) == {}
