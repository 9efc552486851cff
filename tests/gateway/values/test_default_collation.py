"""A database whose default collation is without case: columns, and texts of no column, are compared so."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pymssql
import pytest
from case_tables import cases

from tds_clients import Admin, Clients, Param, rows_of

DATABASE = "folded"

TABLES = """
create table items (id int not null primary key, name varchar(20) not null, code char(4) null,
  exact varchar(20) collate Latin1_General_BIN null)
insert items values (1, 'Alpha', 'ab', 'Alpha')
insert items values (2, 'beta', 'CD', 'beta')
insert items values (3, 'ALPHA ', 'xy', 'ALPHA')
"""

TEXTS: dict[str, list[object]] = cases(__file__, "texts")
"""each text and the values of its first column"""


@pytest.fixture(scope="module")
def login(clients: Clients, functions: None) -> Iterator[pymssql.Connection]:
    with psycopg.connect(clients.server.dsn, autocommit=True) as admin:
        name = clients.server.reader.user
        base = admin.info.dbname
        admin.execute(f'grant create on database "{base}" to {name}')
        connection = clients.pymssql(clients.server.reader)
        connection.autocommit(True)
        run(connection, f"create database {DATABASE} collate {COLLATION}", f"use {DATABASE}", TABLES)
        yield connection
        run(connection, "use master", f"drop database {DATABASE}")
        connection.close()
        admin.execute(f'revoke create on database "{base}" from {name}')


def run(connection: pymssql.Connection, *texts: str) -> None:
    with connection.cursor() as cursor:
        for text in texts:
            cursor.execute(text)


def first_column(connection: pymssql.Connection, text: str) -> list[object]:
    with connection.cursor() as cursor:
        return [row[0] for row in rows_of(cursor, text)]


@pytest.mark.parametrize("text", TEXTS)
def test_of_a_batch(login: pymssql.Connection, text: str) -> None:
    assert first_column(login, text) == TEXTS[text]


@pytest.mark.parametrize("way", ["compiled", "by the gateway"])
@pytest.mark.parametrize("text", TEXTS)
def test_of_a_procedure(login: pymssql.Connection, text: str, way: str) -> None:
    by_gateway = "" if way == "compiled" else "exec ('declare @x int'); "
    text_here = text.replace("#", "#p")
    run(login, f"create procedure p_text as begin set nocount on; {by_gateway}{text_here} end")
    try:
        assert first_column(login, "exec p_text") == TEXTS[text]
    finally:
        run(login, "drop procedure p_text")


COLLATION = "SQL_Latin1_General_CP1_CI_AS"

OBJECTS: dict[str, tuple[list[str], str, object]] = cases(__file__, "objects")
"""what is made in the database `made`, a text, and its first value or error"""


FUNCTIONS: dict[str, tuple[str, str, object]] = cases(__file__, "functions")


@pytest.mark.parametrize("name", OBJECTS)
def test_of_an_object(login: pymssql.Connection, name: str) -> None:
    made, text, expected = OBJECTS[name]
    run(login, f"create database made collate {COLLATION}", "create database exact_made", "use made")
    try:
        run(login, *made)
        if isinstance(expected, int) and expected > 100:
            with pytest.raises(pymssql.Error) as refused:
                first_column(login, text)
            assert refused.value.args[0] == expected, refused.value
        else:
            assert first_column(login, text) == [expected]
    finally:
        run(login, f"use {DATABASE}", "drop database made, exact_made")
        run(login, "drop database if exists one_text, altered, inner_made")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_a_function(login: pymssql.Connection, name: str) -> None:
    create, text, value = FUNCTIONS[name]
    run(login, create)
    try:
        assert first_column(login, text) == [value]
    finally:
        run(login, "drop function made_f")


def test_the_catalogue(login: pymssql.Connection) -> None:
    for text in (
        f"select databasepropertyex('{DATABASE}', 'Collation')",
        # pymssql decodes no sql_variant
        "select convert(nvarchar(128), serverproperty('Collation'))",
        f"select collation_name from sys.databases where name = '{DATABASE}'",
        "select collation_name from sys.columns where object_id = object_id('items') and name = 'name'",
        "select collation_name from information_schema.columns where column_name = 'code'",
    ):
        assert first_column(login, text) == [COLLATION], text
    exact = "select collation_name from sys.columns where object_id = object_id('items') and name = 'exact'"
    assert first_column(login, exact) == ["Latin1_General_100_BIN2_UTF8"]
    assert first_column(login, "select databasepropertyex('online', 'Collation')") == [
        "Latin1_General_100_BIN2_UTF8"
    ]
    run(login, f"exec {DATABASE}..sp_addextendedproperty 'MS_Description', 'of a test'")
    assert first_column(login, f"select databasepropertyex('{DATABASE}', 'Collation')") == [COLLATION]
    assert first_column(
        login, "select value from fn_listextendedproperty(null, null, null, null, null, null, null)"
    ) == ["of a test"]


# --- the table decides about trailing blanks ---

LENGTHS = "select c + '|', datalength(c), v + '|', datalength(v) from blanks..t order by n"
INSERTS = "insert blanks..t values ({0}, 'a', 'b  ')"
TABLE = "create table blanks..t (n int not null, c char(3) null, v varchar(4) null)"


@contextmanager
def database(clients: Clients, admin: Admin) -> Iterator[None]:
    admin.execute(f"create schema blanks authorization {clients.server.reader.user}")
    yield
    admin.execute("drop schema blanks cascade")


def test_a_table_of_ase(clients: Clients, admin: Admin) -> None:
    reader = clients.server.reader
    with database(clients, admin), clients.ct(reader) as ase, clients.pymssql(reader) as connection:
        ase.language(TABLE)
        ase.language(INSERTS.format(1))
        with connection.cursor() as cursor:
            cursor.execute(INSERTS.format(2))
            cursor.execute(LENGTHS)
            assert cursor.fetchall() == [("a|", 1, "b|", 1)] * 2
            assert rows_of(cursor, "select c, v from blanks..t") == [("a", "b")] * 2
            cursor.execute(
                "select data_type, character_maximum_length from blanks.information_schema.columns"
                " where table_name = 't' and column_name = 'c'"
            )
            assert cursor.fetchall() == [("char", 3)]
        assert ase.language(LENGTHS).rows == [["a|", "1", "b|", "1"]] * 2
        assert ase.language("select c, v from blanks..t").rows == [["a", "b"]] * 2


def test_a_table_of_sql_server(clients: Clients, admin: Admin) -> None:
    reader = clients.server.reader
    with database(clients, admin), clients.ct(reader) as ase, clients.pymssql(reader) as connection:
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        ase.language(INSERTS.format(1))
        assert ase.language(LENGTHS).rows == [["a  |", "3", "b  |", "3"]]


@pytest.mark.parametrize(("version", "stored"), [("5.0", ["ab", "b", " "]), ("7.4", ["ab ", "b", "   "])])
def test_texts_of_a_ring(clients: Clients, admin: Admin, version: str, stored: list[str]) -> None:
    """By calls of known shape, by first calls and by text."""
    with clients.ct(clients.server.writer, version) as client:
        for index, text in enumerate(["ab ", "b", "   "], 1):
            given = [Param("int", str(index), "@seq_no"), Param("char", f"2026-01-0{index}", "@time")]
            answer = client.call("put_every_type", [*given, Param("char", text, "@a_varchar")])
            assert answer.errors == []
        written = client.language("exec put_every_type @seq_no = 4, @time = '2026-01-04', @a_varchar = 'ab '")
        assert written.errors == []
    rows = admin.execute(
        "select a_varchar from online.every_type where seq_no < 5 order by seq_no"
    ).fetchall()
    assert [text for (text,) in rows] == [*stored, stored[0]]
