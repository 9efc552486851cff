"""Columns that were added after their table was summarised: earlier rows have null in them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install
from servers import ringlog

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 3, 4, tzinfo=UTC)
ADDED = BEGIN + timedelta(days=2, hours=1, minutes=10)
NOW = BEGIN + timedelta(days=4)
LATE = BEGIN + timedelta(hours=20, seconds=3)
LEVELS = (60, 600, 3600, 86_400)


@pytest.fixture
def magnets(engine: sa.Engine, conninfo: str) -> Iterator[psycopg.Connection]:
    """A row every 20 s, all summarised except the last hours. `later` and `trace` were added on the third
    day. Afterwards a late row arrived for the first day."""
    columns = (Column("current", "m/current", "real"), Column("early", "m/early", "real[]", points=3))
    table = Table("magnets", 10, 20.0, columns, summaries=LEVELS)
    facility = Facility("test", "UTC", (table,))
    install(engine, facility)
    insert = (
        "insert into weeks.magnets (seq_no, time, {}) select 1, time, {}"
        " from generate_series(%s, %s, interval '20 s') as time"
    )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        of_time = "extract(epoch from time) %% 1000"
        before = insert.format("current", of_time)
        connection.execute(before.encode(), [BEGIN, ADDED - timedelta(seconds=1)])
        summarise(conninfo, ADDED, enough=1)
        columns = (
            *columns,
            Column("later", "m/later", "double"),
            Column("trace", "m/trace", "real[]", points=3),
        )
        install(engine, replace(facility, tables=(replace(table, columns=columns),)))
        after = insert.format("current, later, trace", f"{of_time}, {of_time}, array[-1, {of_time}]")
        connection.execute(after.encode(), [ADDED, NOW])
        connection.execute(
            "select ringlog.put_magnets(row (1, %s, 7, null, 8, '{9}')::online.magnets)", [LATE]
        )
        for hours in (1, 20, 40):
            summarise(conninfo, ADDED + timedelta(hours=hours), enough=1)
        assert [*problems_of(connection, engine)] == []
        yield connection


SPANS = [
    (BEGIN, NOW),
    (BEGIN, BEGIN + timedelta(hours=6)),  # before the column, and the row that came late
    (BEGIN + timedelta(seconds=30), ADDED - timedelta(hours=3, seconds=1)),
    (BEGIN + timedelta(days=1), ADDED + timedelta(seconds=50)),
    (ADDED - timedelta(minutes=50), ADDED + timedelta(minutes=50)),
    (ADDED - timedelta(days=1000), NOW + timedelta(days=1)),
    (LATE - timedelta(hours=3), LATE + timedelta(hours=2)),
]
VALUES = {"m/current": "current", "m/later": "later", "m/trace.max": "trace[cardinality(trace)]"}


def test_statistics_agree_with_the_rows(magnets: psycopg.Connection) -> None:
    """By PostgreSQL's own aggregates."""
    for begin, end in SPANS:
        for signal, value in VALUES.items():
            query = (
                "select count(value), min(value), max(value), count(*) - count(value)"
                f" from (select {value}::double precision as value from weeks.magnets"
                " where time >= %s and time < %s) as logged"
            )
            expected = magnets.execute(query.encode(), [begin, end]).fetchall()
            found = "select n, min, max, nulls from ringlog.get_statistics(%s, %s, %s)"
            assert magnets.execute(found, [signal, begin, end]).fetchall() == expected, (signal, begin, end)


def test_trends_agree_with_the_rows(magnets: psycopg.Connection) -> None:
    for begin, end in SPANS:
        for points in (1, 2, 30, 200, 1000):
            assert_trends(magnets, begin, end, points)


def test_summaries_without_earlier_rows_are_found_and_made_again(
    magnets: psycopg.Connection, engine: sa.Engine, conninfo: str
) -> None:
    """As versions before 2026-11-23 made them where a row came late."""
    begin, end = LATE - timedelta(minutes=20), LATE + timedelta(minutes=20)
    query = "select signal, time, n, nulls from ringlog.get_trends(%s, %s, %s, 40)"
    right = magnets.execute(query, [",".join(VALUES), begin, end]).fetchall()
    magnets.execute(
        "update summary.magnets set nulls = null where begins <= %s and column_name = 'later'", [LATE]
    )
    assert magnets.execute(query, [",".join(VALUES), begin, end]).fetchall() != right
    assert [*problems_of(magnets, engine)] == [
        "summary.magnets: column later has fewer rows than others in 3 spans of 86400 s,"
        " the first at 2026-03-04 00:00:00+0000"
    ]
    done = ringlog("summarise", "magnets", "2026-03-01", "2026-03-08", RINGLOG_DSN=conninfo)
    assert done.returncode == 0, done.stderr
    rows = magnets.execute(
        "select count(*) from weeks.magnets, ringlog.summarised where magnets.time < until"
    ).fetchone()
    assert rows is not None
    assert done.stdout == f"summarised magnets from 2026-03-02 on: {rows[0]} rows\n"
    assert magnets.execute(query, [",".join(VALUES), begin, end]).fetchall() == right
    assert [*problems_of(magnets, engine)] == []


def assert_trends(connection: psycopg.Connection, begin: datetime, end: datetime, points: int) -> None:
    query = "select width, origin from ringlog.bins_of_trends(%s, %s, %s, %s)"
    ((width, origin),) = connection.execute(query, [[*VALUES], begin, end, points]).fetchall()
    expected = []
    for signal, value in VALUES.items():
        query = f"""
            select
              %(signal)s,
              date_bin(%(width)s, time, %(origin)s),
              count(value),
              min(value),
              max(value),
              avg(value),
              (array_agg(value order by time) filter (where value is not null))[1],
              (array_agg(value order by time desc) filter (where value is not null))[1],
              count(*) - count(value)
            from (
              select time, {value}::double precision as value
              from weeks.magnets where time >= %(begin)s and time < %(end)s
            ) as logged
            group by 2 order by 2
        """
        given = {"signal": signal, "width": width, "origin": origin, "begin": begin, "end": end}
        expected += connection.execute(query.encode(), given).fetchall()
    found = (
        "select signal, time, n, min, max, mean, first, last, nulls from ringlog.get_trends(%s, %s, %s, %s)"
    )
    made = connection.execute(found, [",".join(VALUES), begin, end, points]).fetchall()
    assert len(made) == len(expected) > 0
    for got, wanted in zip(made, expected, strict=True):
        assert got[5] == (None if wanted[5] is None else pytest.approx(wanted[5])), (got, wanted, points)
        assert (*got[:5], *got[6:]) == (*wanted[:5], *wanted[6:]), (begin, end, points)
