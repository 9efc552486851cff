"""The widest tables of PostgreSQL, and columns whose names have a meaning in SQL or in a procedure."""

from datetime import datetime
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.installing.install import install

from .conftest import Connect

NOW = datetime.now().astimezone()


def put(connection: psycopg.Connection, table: Table, value: object) -> None:
    call = sql.SQL("select ringlog.{}(row (1, {}, {})::online.{})").format(
        sql.Identifier(f"put_{table.name}"),
        NOW,
        sql.SQL(", ").join([sql.Literal(value)] * len(table.columns)),
        sql.Identifier(table.name),
    )
    connection.execute(call)


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "kind", "value"),
    [
        (1598, "real", 1.5),
        (999, "double", 1e300),
        (336, "varchar(40)", "\N{GRINNING FACE}" * 40),
        (384, "varchar(5)", "\N{GRINNING FACE}" * 5),
    ],
)
def test_the_widest_tables(
    engine: sa.Engine, connect: Connect, tmp_path: Path, columns: int, kind: str, value: object
) -> None:
    """The widest permitted table holds its largest values, and one more column is refused."""
    text = '[[table]]\nname = "wide"\nrows = 1\ncycle = 1\n[[table.column]]\nname = "c{n}"\n'
    file = tmp_path / "facility.toml"
    file.write_text(text + f'count = {columns + 1}\nsignal = "c{{n}}"\ntype = "{kind}"\n')
    with pytest.raises(FacilityError, match=r"PostgreSQL's (limit|page)"):
        load_facility(file)
    file.write_text(text + f'count = {columns}\nsignal = "c{{n}}"\ntype = "{kind}"\n')
    facility = load_facility(file)
    install(engine, facility)
    connection = connect()
    put(connection, facility.tables[0], value)
    for procedure in ("get_wide()", "get_wide_at(now())", "get_wide_range()"):
        row = connection.execute(sql.SQL("select * from ringlog." + procedure)).fetchone()
        assert row is not None
        assert row[2:] == (value,) * columns


@pytest.mark.long
def test_the_rule_of_the_page_is_postgresqls(engine: sa.Engine, connect: Connect) -> None:
    """It assumes a null in the row, which adds 128 bytes of header, and thus one column less."""
    doubles = [Column(f"c{n}", f"c{n}", "double") for n in range(1000)]
    table = Table("wide", 1, 1.0, (*doubles, Column("b", "b", "bit")))
    install(engine, Facility("test", "UTC", (table,)))
    call = sql.SQL("select ringlog.put_wide(row (1, now(), {}, null)::online.wide)")
    with pytest.raises(errors.ProgramLimitExceeded, match="row is too big: size 8168, maximum size 8160"):
        connect().execute(call.format(sql.SQL(", ").join([sql.Literal(1.5)] * 1000)))


def test_a_put_of_many_columns_takes_little_memory(engine: sa.Engine, connect: Connect) -> None:
    """Each of a server's sessions keeps a plan per table: megabytes would soon be gigabytes."""
    columns = tuple(Column(f"c{n}", f"c{n}", "real") for n in range(200))
    table = Table("magnets", 1, 1.0, columns)
    install(engine, Facility("test", "UTC", (table,)))
    connection = connect()
    for _ in range(10):
        put(connection, table, 1.5)
    memory = connection.execute(
        "select sum(total_bytes) from pg_backend_memory_contexts where name ~ 'CachedPlan|PL/pgSQL'"
    ).fetchone()
    assert memory is not None
    assert memory[0] < 2 * 2**20


AWKWARD = (
    # names in the procedures
    "r", "n", "at", "ring", "log", "logged", "latest", "newest", "next", "period", "found", "in_force",
    "rows", "from_time", "to_time", "max_rows", "name", "value", "place", "signal", "put_t", "get_t",
    "online",
    # words of SQL
    "select", "order", "user", "table", "desc", "end", "row", "values", "limit", "null", "default", "all",
    "date", "timestamp", "current_user", "when", "check",
)  # fmt: skip


def test_names_that_mean_something_else(engine: sa.Engine, connect: Connect) -> None:
    table = Table("t", 2, 1.0, tuple(Column(name, f"t/{name}", "int") for name in AWKWARD))
    select = Table("select", 2, 1.0, (Column("order", "select/order", "int"),))
    install(engine, Facility("test", "UTC", (table, select)))
    connection = connect()
    for each in (table, select):
        put(connection, each, 7)
        put(connection, each, 7)
        for procedure in (
            "get_{}(2)",
            "get_{}_at(now())",
            "get_{}_range(null, now(), 9)",
        ):
            statement = "select * from ringlog." + procedure.format(each.name)
            assert [row[2:] for row in connection.execute(sql.SQL(statement))] == [(7,) * len(each.columns)]
        assert connection.execute(sql.SQL(f"select seq_no from ringlog.last_{each.name}()")).fetchone() == (
            1,
        )
    call = sql.SQL("select ringlog.put_t(row (null, now(), {})::online.t)")
    connection.execute(call.format(sql.SQL(", ").join([sql.Literal(8)] * len(AWKWARD))))
    for name in AWKWARD:
        get_signal = "select value from ringlog.get_signal(%s)"
        assert connection.execute(get_signal, [f"t/{name}"]).fetchall() == [(7,), (8,)]
        assert connection.execute("select value from ringlog.get_latest(%s)", [f"t/{name}"]).fetchone() == (
            8,
        )
