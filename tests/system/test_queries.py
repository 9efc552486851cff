"""Catalogue queries of drivers and users, compiled and run on PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ringlog.gateway._core import TsqlError, translate
from servers import RunningServer

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> Iterator[Connection]:
    with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as connection:
        yield connection


def run(connection: Connection, batch: str) -> list[list[tuple[Any, ...]]]:
    """The result sets of a batch of queries."""
    results = []
    for sql in translate(batch, database="online"):
        cursor = connection.execute(sql.encode())
        if cursor.description is not None:
            results.append(cursor.fetchall())
    return results


def refusal(batch: str) -> str:
    with pytest.raises(TsqlError) as refused:
        translate(batch, database="online")
    return refused.value.args[2]


RINGS = ["every_type", "sr_mag_ps", "sr_rf", "sr_vac"]
QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("select name from sysobjects where type = 'U' order by name", [(name,) for name in RINGS]),
    ("select name from dbo.sysobjects where xtype = 'U' and name like 'sr[_]r%'", [("sr_rf",)]),
    ("SELECT NAME FROM SYS.TABLES ORDER BY NAME", [(name,) for name in RINGS]),
    (
        "select c.name, t.name, c.length from sysobjects o, syscolumns c, systypes t"
        " where o.id = c.id and c.usertype = t.usertype and o.name = 'sr_rf' order by c.colid",
        [("seq_no", "int", 4), ("time", "datetime2", 8), ("power", "real", 4), ("arcs", "int", 4)],
    ),
    (
        "select [COLUMN_NAME], data_type from [INFORMATION_SCHEMA].[COLUMNS]"
        " where [Columns].Table_Name = 'sr_rf' and is_nullable = 'NO'",
        [("seq_no", "int")],
    ),
    ("select name from sys.columns where is_nullable = 0 and object_id = object_id('sr_rf')", [("seq_no",)]),
    (
        "select col_name(object_id('sr_rf'), 2), type_name(56), col_length('sr_rf', 'time')",
        [("time", "int", 8)],
    ),
    ("select name from master..sysdatabases where name = 'log'", [("log",)]),
    ("select count(*) from master..sysprocesses where 1 = 0", [(0,)]),
    ("select count(*) from master.sys.dm_exec_sessions where 1 = 0", [(0,)]),
    ("select count(*) from master..syslogins where 1 = 0", [(0,)]),
    # another database
    ("select count(*) from log..sysobjects where type = 'U'", [(4,)]),
    (
        "select t.name from [log].[sys].[tables] t join log.sys.objects o on o.object_id = t.object_id"
        " where o.name = 'sr_rf'",
        [("sr_rf",)],
    ),
    ("select distinct table_catalog from log.INFORMATION_SCHEMA.COLUMNS", [("log",)]),
    ("select tables.name from log.sys.tables where log.sys.tables.name = 'sr_rf'", [("sr_rf",)]),
    # mssql-jdbc
    ("SELECT name AS TABLE_CAT FROM sys.databases WHERE name in ('log') order by name", [("log",)]),
    (
        "select name collate database_default as n from sys.tables"
        " where name = 'sr_rf' COLLATE DATABASE_DEFAULT",
        [("sr_rf",)],
    ),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_queries_on_the_catalogue(reader: Connection, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert run(reader, query) == [expected]


def test_unknown_databases_are_refused(reader: Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="database 'nowhere'"):
        run(reader, "select * from nowhere.sys.tables")


def test_a_table_variable_lives_in_its_batch(reader: Connection) -> None:
    batch = (
        "declare @t table (a int primary key, b varchar(10)) insert @t values (1, 'x'), (2, 'y')"
        " update @t set b = 'z' where a = 2 delete @t where a = 1 select t.a, t.b from @t as t"
    )
    assert run(reader, batch) == [[(2, "z")]]
    assert run(reader, batch) == [[(2, "z")]]
    assert reader.execute("select to_regclass('pg_temp.\"#@t\"')").fetchone() == (None,)
    assert "@t" in refusal("select * from @t")


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("begin tran declare @t table (a int) rollback", "rollback with a table variable"),
        ("insert into #t output inserted.a exec ('select 1')", "OUTPUT clause"),
    ],
)
def test_refusals(batch: str, said: str) -> None:
    assert said in refusal(batch)
