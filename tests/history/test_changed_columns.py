"""Archived weeks of a table whose columns have changed later."""

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
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.installing.obstacles import InstallRefused
from ringlog.schema.relations.partitions import maintain

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
        assert len([*archive(engine, conninfo, NOW, pauses=0)]) == 2
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
        assert len([*archive(engine, conninfo, NOW, pauses=0)]) >= 1
        assert values() == expected
        assert len([*recall(engine, conninfo, "magnets", BEGIN, NOW, timedelta(days=1))]) >= 2
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
    assert len([*archive(engine, connection.info.dsn, NOW, pauses=0)]) == 2
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
