"""Fields of archived files: which values of a column Iceberg shows under which name."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from ringlog.history.archive import archiving
from ringlog.history.archive.addresses import NAMESPACE
from ringlog.history.archive.archiving import archive
from ringlog.history.archive.folder import Folder
from ringlog.history.archive.iceberg import catalog, publish
from ringlog.history.archive.parquet import fields, files
from ringlog.history.archive.parquet.fields import Fields
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from .test_changed_columns import changed

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
MAGNETS = Table(
    "magnets",
    10,
    1.0,
    (
        Column("value", "m/value", "int"),
        Column("amount", "m/amount", "numeric(18,6)"),
        Column("small", "m/small", "numeric(12,9)"),
        Column("kept", "m/kept", "real"),
    ),
)
INSERT = "insert into weeks.magnets select 1, %s + n * interval '1 hour', {} from generate_series(1, 9) n"
VALUES = "n::text::{}, n / 7.0 - 1000000, n / 1e9, n / 2.0"


@pytest.fixture
def facility(engine: sa.Engine, where: str) -> Facility:
    history = History(Retention(1, "week"), where)
    made = Facility("test", "UTC", (MAGNETS,), history=history)
    install(engine, made)
    return made


@pytest.fixture
def sql(facility: Facility, conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


def archived(engine: sa.Engine, sql: psycopg.Connection, week: int, values: str) -> list[str]:
    """A database with nine rows of an archived week."""
    begin = BEGIN + timedelta(weeks=week)
    sql.execute(INSERT.format(values).encode(), [begin])
    now = begin + timedelta(weeks=3)
    maintain(engine, now)
    return [*archive(sql.info.dsn, now, pauses=0)]


def published(sql: psycopg.Connection, facility: Facility) -> tuple[list[str], list[tuple[object, ...]]]:
    """The columns of the Iceberg table, and its rows in the order of their times, as read by DuckDB and
    Arrow.
    """
    assert facility.history is not None
    table = catalog(sql.info.dsn, str(facility.history.archive)).load_table((NAMESPACE, "magnets"))
    rows = table.scan().to_arrow().sort_by("time")
    found = [tuple(row.values()) for row in rows.drop_columns(["seq_no", "time"]).to_pylist()]
    duckdb = table.scan().to_duckdb("rows")
    assert duckdb.execute("select * exclude (seq_no, time) from rows order by time").fetchall() == found
    return table.schema().column_names[2:], found


def with_type(facility: Facility, kind: str) -> Facility:
    value = replace(MAGNETS.columns[0], type=ColumnType.of(kind))
    return replace(facility, tables=(replace(MAGNETS, columns=(value, *MAGNETS.columns[1:])),))


def test_a_column_keeps_its_field_while_iceberg_widens_it(sql: psycopg.Connection) -> None:
    with psycopg.connect(sql.info.dsn) as connection:
        fields.become_owner(connection)
        known = Fields(connection, "magnets")
        kinds = ("int", "varchar(20)", "smallint", "text", "bigint", "int", "bit", "double", "real", "bit")
        names = [known.of("a", ColumnType.of(kind)).name for kind in kinds]
        assert names == ["a", "a_2", "a", "a_2", "a", "a", "a_3", "a_4", "a_4", "a_3"]
        kinds = ("numeric(10,2)", "numeric(12,2)", "numeric(8,2)", "numeric(12,3)", "real[]", "double[]")
        names = [known.of("b", ColumnType.of(kind)).name for kind in kinds]
        assert names == ["b", "b", "b", "b_2", "b_3", "b_3"]
        assert known.of("value_2", ColumnType.of("int")).id == 9  # the points of b_3 have 8
        # the log has a column value_2, which has a field already
        assert known.of("value", ColumnType.of("int")).name == "value"
        assert known.of("value", ColumnType.of("text")).name == "value_3"
        known.retire(["b"])
        assert known.of("a", ColumnType.of("int")).name == "a_5"
        stored = {field.name: str(field.type) for field in Fields(connection, "magnets")}
        assert [stored[name] for name in ("a", "a_2", "b", "b_3")] == [
            "bigint",
            "varchar(20)",
            "numeric(12,2)",
            "double[]",
        ]


def test_changed_columns(
    engine: sa.Engine, sql: psycopg.Connection, conninfo: str, facility: Facility
) -> None:
    assert len(archived(engine, sql, 0, VALUES.format("int"))) == 1
    [*publish(conninfo)]
    for week, kind in enumerate(("varchar(20)", "int", "bigint"), 1):
        changed(engine, sql, with_type(facility, kind))
        assert "1 weeks more" in archived(engine, sql, week, VALUES.format(kind))[-1]
    names, rows = published(sql, facility)
    assert names == ["value", "amount", "small", "kept", "value_2"]
    numbers = [*range(1, 10)]
    assert [row[0] for row in rows] == numbers + 9 * [None] + numbers + numbers
    assert [row[4] for row in rows] == 9 * [None] + [*map(str, numbers)] + 18 * [None]
    assert [row[1] for row in rows[:9]] == [
        (Decimal(n) / 7 - 1000000).quantize(Decimal("0.000001")) for n in numbers
    ]
    assert [row[2] for row in rows[:9]] == [Decimal(n) / 10**9 for n in numbers]
    # one that is gone, and made again with the same type
    sql.execute(
        "drop view log.magnets cascade; alter table weeks.magnets drop column kept;"
        " alter table online.magnets drop column kept;"
        " delete from ringlog.signal where column_name = 'kept'"
    )
    (table,) = with_type(facility, "bigint").tables
    install(engine, replace(facility, tables=(replace(table, columns=table.columns[:3]),)))
    [*publish(conninfo)]
    install(engine, with_type(facility, "bigint"))
    assert "1 weeks more" in archived(engine, sql, 4, VALUES.format("bigint"))[-1]
    names, rows = published(sql, facility)
    assert names == ["value", "amount", "small", "kept", "value_2", "kept_2"]
    halves = [n / 2 for n in numbers]
    assert [(row[3], row[5]) for row in rows[27:]] == [(n, None) for n in halves] + [
        (None, n) for n in halves
    ]


def test_a_numeric_that_is_not_a_decimal(engine: sa.Engine, sql: psycopg.Connection) -> None:
    (line,) = archived(engine, sql, 0, "n, 'NaN', 0, 0")
    assert line.startswith("log.magnets_2026w10 stays in PostgreSQL: column amount has a numeric that is no ")
    assert sql.execute("select count(*) from weeks.magnets").fetchone() == (9,)


def test_files_without_field_ids(
    engine: sa.Engine,
    sql: psycopg.Connection,
    conninfo: str,
    facility: Facility,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files of earlier versions, which contain numerics as texts."""
    with monkeypatch.context() as earlier:
        earlier.setattr(fields, "of_log", lambda connection, table: {})
        assert len(archived(engine, sql, 0, VALUES.format("int"))) == 1
    folder = Folder(where)
    with folder.opened("magnets/2026w10.parquet") as stream:
        assert "PARQUET:field_id" not in str(pq.read_schema(stream))
    assert [*publish(conninfo)] == ["published log.magnets: 1 weeks more, 0 fewer; 1 with 9 rows"]
    assert len(archived(engine, sql, 1, VALUES.format("int"))) == 2
    names, rows = published(sql, facility)
    assert names == ["value", "amount", "small", "kept", "amount_2", "small_2"]
    numbers = [*range(1, 10)]
    assert [row[0] for row in rows] == 2 * numbers
    assert [row[4] for row in rows[:9]] == [str(row[1]) for row in rows[9:]]
    assert [row[1] for row in rows[:9]] == [row[4] for row in rows[9:]] == 9 * [None]
    # a reader of rows gets texts from both
    for week in (10, 11):
        (batch,) = files.read(folder, f"magnets/2026w{week}.parquet")
        assert batch["small"].to_pylist() == [f"0.00000000{n}" for n in numbers]
    # a type that the name cannot have too
    changed(engine, sql, with_type(facility, "varchar(20)"))
    with monkeypatch.context() as earlier:
        earlier.setattr(fields, "of_log", lambda connection, table: {})
        earlier.setattr(archiving, "_publish", lambda *_: iter(()))
        archived(engine, sql, 2, VALUES.format("varchar"))
    (line,) = publish(conninfo)
    assert (
        "column value is string, and another type in other weeks without field ids: recall the week" in line
    )
