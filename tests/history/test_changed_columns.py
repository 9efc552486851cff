"""Archived weeks of a table whose columns have changed later."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.recall import recall
from ringlog.history.reading import newest, read
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.installing.obstacles import InstallRefused
from ringlog.schema.relations.partitions import maintain
from servers import ringlog

from .trend_bins import bins_of_rows, same

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
NOW = datetime(2026, 4, 20, tzinfo=UTC)
OTHERS = (Column("n", "m/n", "int"),)


def changed(engine: sa.Engine, connection: psycopg.Connection, facility: Facility) -> None:
    """Installs a facility, after the administrator's SQL for it."""
    try:
        install(engine, facility)
    except InstallRefused as refused:
        for obstacle in refused.obstacles:
            connection.execute(obstacle.sql.encode())
        install(engine, facility)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("real", "double"),
        ("smallint", "bigint"),
        ("int", "double"),
        ("bit", "int"),
        # of the same length
        ("double", "bigint"),
        ("real", "int"),
    ],
)
def test_a_column_of_another_type_and_new_ones(
    engine: sa.Engine, conninfo: str, tmp_path: Path, before: str, after: str
) -> None:
    history = History(Retention(1, "week"), str(tmp_path / "archive"))
    table = Table("magnets", 10, 1.0, (Column("value", "m/value", before), *OTHERS))
    facility = Facility("test", "UTC", (table,), history=history)
    install(engine, facility)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        value = "n %% 2 = 0" if before == "bit" else "n %% 100"
        insert = "insert into weeks.magnets (seq_no, time, value, n) select 1, %s + n * interval '1 hour',"
        connection.execute(f"{insert} {value}, n from generate_series(0, 335) n".encode(), [BEGIN])
        maintain(engine, NOW)
        assert len([*archive(conninfo, NOW, pauses=0)]) == 2
        columns = (Column("value", "m/value", after), *OTHERS, Column("more", "m/more", "double"))
        changed(engine, connection, replace(facility, tables=(replace(table, columns=columns),)))
        connection.execute(f"{insert} n, n from generate_series(1000, 1010) n".encode(), [BEGIN])

        def values() -> list[dict[str, object]]:
            batches = [*read(conninfo, "magnets", ["value", "n", "more"])]
            whole = pa.Table.from_batches(batches)  # of one schema
            return whole.to_pylist()

        rows = values()
        assert len(rows) == 336 + 11
        number = [n % 2 == 0 if before == "bit" else n % 100 for n in range(336)]
        assert [row["value"] for row in rows] == [*number, *range(1000, 1011)]
        assert [row["n"] for row in rows] == [*range(336), *range(1000, 1011)]
        row = newest(conninfo, "magnets", ["value", "more"], BEGIN + timedelta(hours=3))
        assert row is not None
        assert row["value"].to_pylist() == [number[2]]
        late = BEGIN + timedelta(minutes=7)
        connection.execute(
            "insert into weeks.magnets (seq_no, time, value, more) values (1, %s, 1, 2.5)", [late]
        )
        expected = values()
        assert len([*archive(conninfo, NOW, pauses=0)]) >= 1
        assert values() == expected
        assert len([*recall(conninfo, "magnets", BEGIN, NOW, timedelta(days=1))]) >= 2
        assert values() == expected
        inside = connection.execute("select count(*), sum(value::int) from weeks.magnets")
        assert inside.fetchone() == (348, sum(int(row["value"]) for row in expected))  # type: ignore[call-overload]


def archived_facility(engine: sa.Engine, connection: psycopg.Connection, tmp_path: Path) -> Facility:
    """A table with two weeks in the archive, and nothing else."""
    history = History(Retention(1, "week"), str(tmp_path / "archive"))
    table = Table("magnets", 10, 1.0, (Column("value", "m/value", "real"), *OTHERS))
    facility = Facility("test", "UTC", (table,), history=history)
    install(engine, facility)
    connection.execute(
        "insert into weeks.magnets (seq_no, time, value, n)"
        " select 1, %s + n * interval '1 hour', n, n from generate_series(0, 335) n",
        [BEGIN],
    )
    maintain(engine, NOW)
    assert len([*archive(connection.info.dsn, NOW, pauses=0)]) == 2
    return facility


def test_a_column_with_values_in_the_archive_is_not_dropped(
    engine: sa.Engine, conninfo: str, tmp_path: Path
) -> None:
    """A column created again with its name would show them."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        facility = archived_facility(engine, connection, tmp_path)
        (table,) = facility.tables
        with pytest.raises(InstallRefused, match=r"column value: .* weeks in the archive") as refused:
            install(engine, replace(facility, tables=(replace(table, columns=OTHERS),)))
        (obstacle,) = refused.value.obstacles
        assert len(connection.execute(obstacle.sql.encode()).fetchall()) == 2
    retired = replace(table.columns[0], retired=True)
    install(engine, replace(facility, tables=(replace(table, columns=(retired, *OTHERS)),)))
    whole = pa.Table.from_batches([*read(conninfo, "magnets", ["value"])])
    assert whole["value"].to_pylist() == [*range(336)]


def test_a_table_created_again_has_no_weeks_of_the_former_one(
    engine: sa.Engine, conninfo: str, tmp_path: Path
) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        facility = archived_facility(engine, connection, tmp_path)
        (table,) = facility.tables
        other = replace(facility, tables=(Table("pumps", 10, 1.0, (Column("n", "p/n", "int"),)),))
        files = connection.execute("select file from ringlog.cold_week order by 1").fetchall()
        changed(engine, connection, other)
        assert connection.execute("select count(*) from ringlog.cold_week").fetchone() == (0,)
        query = "select file from ringlog.archive_file where left_at is not null order by 1"
        assert connection.execute(query).fetchall() == files
        changed(engine, connection, replace(facility, tables=(table, *other.tables)))
        assert sum(batch.num_rows for batch in read(conninfo, "magnets", ["value"])) == 0
        connection.execute(
            "insert into weeks.magnets (seq_no, time, value, n) values (1, %s, 7, 7)",
            [BEGIN + timedelta(hours=1)],
        )
    whole = pa.Table.from_batches([*read(conninfo, "magnets", ["value", "n"])])
    assert whole["value"].to_pylist() == [7]


# --- columns that were added after their table was summarised: earlier rows have null in them ---

FIRST = datetime(2026, 3, 4, tzinfo=UTC)
ADDED = FIRST + timedelta(days=2, hours=1, minutes=10)
LAST = FIRST + timedelta(days=4)
LATE = FIRST + timedelta(hours=20, seconds=3)
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
        connection.execute(before.encode(), [FIRST, ADDED - timedelta(seconds=1)])
        summarise(conninfo, ADDED, enough=1)
        columns = (
            *columns,
            Column("later", "m/later", "double"),
            Column("trace", "m/trace", "real[]", points=3),
        )
        install(engine, replace(facility, tables=(replace(table, columns=columns),)))
        after = insert.format("current, later, trace", f"{of_time}, {of_time}, array[-1, {of_time}]")
        connection.execute(after.encode(), [ADDED, LAST])
        connection.execute(
            "select ringlog.put_magnets(row (1, %s, 7, null, 8, '{9}')::online.magnets)", [LATE]
        )
        for hours in (1, 20, 40):
            summarise(conninfo, ADDED + timedelta(hours=hours), enough=1)
        assert [*problems_of(connection)] == []
        yield connection


SPANS = [
    (FIRST, LAST),
    (FIRST, FIRST + timedelta(hours=6)),  # before the column, and the row that came late
    (FIRST + timedelta(seconds=30), ADDED - timedelta(hours=3, seconds=1)),
    (FIRST + timedelta(days=1), ADDED + timedelta(seconds=50)),
    (ADDED - timedelta(minutes=50), ADDED + timedelta(minutes=50)),
    (ADDED - timedelta(days=1000), LAST + timedelta(days=1)),
    (LATE - timedelta(hours=3), LATE + timedelta(hours=2)),
]
VALUES = {"m/current": "current", "m/later": "later", "m/trace.max": "trace[cardinality(trace)]"}


@pytest.mark.long
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


@pytest.mark.long
def test_trends_agree_with_the_rows(magnets: psycopg.Connection) -> None:
    for begin, end in SPANS:
        for points in (1, 2, 30, 200, 1000):
            assert_trends(magnets, begin, end, points)


@pytest.mark.long
def test_summaries_without_earlier_rows_are_found_and_made_again(
    magnets: psycopg.Connection, conninfo: str
) -> None:
    """As versions before 2026-11-23 made them where a row came late."""
    begin, end = LATE - timedelta(minutes=20), LATE + timedelta(minutes=20)
    query = "select signal, time, n, nulls from ringlog.get_trends(%s, %s, %s, 40)"
    right = magnets.execute(query, [",".join(VALUES), begin, end]).fetchall()
    magnets.execute(
        "update summary.magnets set nulls = null where begins <= %s and column_name = 'later'", [LATE]
    )
    assert magnets.execute(query, [",".join(VALUES), begin, end]).fetchall() != right
    assert [*problems_of(magnets)] == [
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
    assert [*problems_of(magnets)] == []


def assert_trends(connection: psycopg.Connection, begin: datetime, end: datetime, points: int) -> None:
    query = "select width, origin from ringlog.bins_of_trends(%s, %s, %s, %s)"
    ((width, origin),) = connection.execute(query, [[*VALUES], begin, end, points]).fetchall()
    expected = [
        (signal, *row)
        for signal, value in VALUES.items()
        for row in bins_of_rows(connection, value, begin, end, width, origin)
    ]
    made = connection.execute(
        "select * from ringlog.get_trends(%s, %s, %s, %s)", [",".join(VALUES), begin, end, points]
    )
    same(made.fetchall(), expected)
