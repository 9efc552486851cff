"""T-SQL's catalogue views and functions, through PostgreSQL's own clients."""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from case_tables import cases, plain
from psycopg import sql

from servers import RunningServer

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def writer(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.writer), autocommit=True) as connection:
        yield connection


def rows(connection: Connection, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(query, values).fetchall()


def value(connection: Connection, query: LiteralString, *values: object) -> Any:
    ((found,),) = rows(connection, query, *values)
    return found


@pytest.mark.parametrize("case", cases(__file__, "case"), ids=lambda case: case["name"])
def test_answers(server: RunningServer, case: dict[str, Any]) -> None:
    login = case.get("login", "reader")
    dsn = server.dsn if login == "admin" else server.dsn_of(getattr(server, login))
    with psycopg.connect(dsn) as connection:
        for query, *answer in case["steps"]:
            found = connection.execute(query)
            for wanted in answer:
                assert [list(row) for row in found] == plain(wanted), query
        connection.rollback()


RINGS = ["every_type", "sr_mag_ps", "sr_rf", "sr_vac"]


@pytest.mark.parametrize("database", ["online", "log"])
def test_tables_are_those_of_the_current_database(reader: Connection, database: str) -> None:
    with reader.transaction():
        reader.execute("select set_config('search_path', %s, true)", [database])
        assert [name for (name,) in rows(reader, "select name from sys.tables order by name")] == RINGS
        listed = "select name from sys.sysobjects where type = 'U' order by name"
        assert [name for (name,) in rows(reader, listed)] == RINGS
        assert rows(
            reader,
            "select distinct table_catalog, table_schema, table_type from tsql_information_schema.tables",
        ) == [(database, "dbo", "BASE TABLE")]


def test_another_databases_views_are_functions(reader: Connection) -> None:
    listed = (
        "select name from sys.sysobjects('log') where type = 'U' and id = 'log.sr_rf'::regclass::oid::integer"
    )
    assert rows(reader, listed) == [("sr_rf",)]
    assert rows(reader, "select distinct table_catalog from tsql_information_schema.columns('log')") == [
        ("log",)
    ]
    # and only there
    assert value(reader, "select sys.db_name()") == "online"
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="'nowhere'"):
        rows(reader, "select * from sys.tables('nowhere')")


@pytest.mark.parametrize("key", ["xtype = t.xtype", "xusertype = t.xusertype", "usertype = t.usertype"])
def test_the_old_ways_to_join_a_column_with_its_type(reader: Connection, key: str) -> None:
    columns = reader.execute(
        sql.SQL(
            "select c.name, t.name, c.length from sys.syscolumns c join sys.systypes t on c.{}"
            " where c.id = sys.object_id('sr_rf') and t.name <> 'sysname' order by c.colid"
        ).format(sql.SQL(key))  # type: ignore[arg-type]
    ).fetchall()
    assert columns == [
        ("seq_no", "int", 4),
        ("time", "datetime2", 8),
        ("power", "real", 4),
        ("arcs", "int", 4),
    ]


@pytest.mark.parametrize(
    ("type", "name", "length", "precision", "scale", "ase"),
    cases(__file__, "types_beyond_those_of_a_facility"),
)
def test_types_beyond_those_of_a_facility(
    admin: Connection, type: str, name: str, length: int, precision: int, scale: int, ase: str
) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute(sql.SQL("create table online.t (c {})").format(sql.SQL(type)))  # type: ignore[arg-type]
        found = rows(
            admin,
            "select described.name, bytes, digits, scale, ase_name"
            " from pg_attribute, sys.described_type(atttypid, atttypmod) as described"
            " where attrelid = 'online.t'::regclass and attname = 'c'",
        )
    assert found == [(name, length, precision, scale, ase)]


@pytest.mark.parametrize(
    ("type", "declaration", "characters"),
    # Date and time data types (SQL Server documentation); Babelfish's sp_columns_100 has 14 for time(5)
    cases(__file__, "the_precision_of_a_moment_is_its_characters"),
)
def test_the_precision_of_a_moment_is_its_characters(
    admin: Connection, type: str, declaration: str, characters: int
) -> None:
    found = value(
        admin, "select odbc_precision from sys.described_type(to_regtype(%s)::oid, -1, %s)", type, declaration
    )
    assert found == characters


@pytest.mark.parametrize(("expression", "expected"), cases(__file__, "functions_of_names"))
def test_functions_of_names(reader: Connection, expression: str, expected: object) -> None:
    assert reader.execute(f"select {expression}".encode()).fetchone() == (plain(expected),)


@pytest.mark.parametrize(("name", "pattern", "expected"), cases(__file__, "patterns_of_names"))
def test_patterns_of_names(reader: Connection, name: str, pattern: str, expected: bool) -> None:
    assert (value(reader, "select sys.matches(%s, %s)", name, plain(pattern)) or False) is expected


@pytest.mark.parametrize(("name", "is_found"), [("SR_RF", True), ("sr%", False), ("%", False)])
def test_an_exact_name_is_no_pattern(reader: Connection, name: str, is_found: bool) -> None:
    """@fUsePattern (SQL Server documentation, sp_columns and sp_stored_procedures)"""
    columns = "select count(*) > 0 from sys.sp_columns_100(%s, null, 'online', fusepattern => false)"
    assert value(reader, columns, name) == is_found
    procedure = name.replace("SR", "GET_SR")
    procedures = "select count(*) > 0 from sys.sp_stored_procedures(%s, null, 'online', fusepattern => false)"
    assert value(reader, procedures, procedure) == is_found


def test_the_text_of_a_procedure_in_pieces(writer: Connection) -> None:
    whole = value(
        writer, "select definition from sys.sql_modules where object_id = sys.object_id('put_sr_rf')"
    )
    pieces = rows(
        writer, "select text from sys.syscomments where id = sys.object_id('put_sr_rf') order by colid"
    )
    assert "".join(text for (text,) in pieces) == whole
    assert max(len(text) for (text,) in pieces) == 255
    lines = rows(writer, "select * from sys.sp_helptext('put_sr_rf')")
    assert "\n".join(text for (text,) in lines) == whole
