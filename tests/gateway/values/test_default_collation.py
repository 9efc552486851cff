"""A database whose default collation is without case: columns, and texts of no column, are compared so."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pymssql
import pytest

from tds_clients import Admin, Clients, Param, rows_of

DATABASE = "folded"

TABLES = """
create table items (id int not null primary key, name varchar(20) not null, code char(4) null,
  exact varchar(20) collate Latin1_General_BIN null)
insert items values (1, 'Alpha', 'ab', 'Alpha')
insert items values (2, 'beta', 'CD', 'beta')
insert items values (3, 'ALPHA ', 'xy', 'ALPHA')
"""

TEXTS: dict[str, list[object]] = {
    # literals and variables ("Collation Precedence": the database's default)
    "select case when 'a' = 'A' then 1 else 0 end": [1],
    "select case when 'a' <> 'A' then 1 else 0 end": [0],
    "select case when 'b' > 'A' and 'B' between 'a' and 'c' then 1 else 0 end": [1],
    "declare @v varchar(5), @n int set @v = 'AbC' set @n = 0 if @v = 'aBc' set @n = 1 select @n": [1],
    "declare @v varchar(5) set @v = 'AbC' select case @v when 'x' then 1 when 'abc' then 2 end": [2],
    "declare @v varchar(5) set @v = 'AbC' select case when @v in ('x', 'ABC') then 1 end": [1],
    "declare @v varchar(5) set @v = 'AbC' select case when @v like 'a[B-b]%' then 1 end": [1],
    "declare @v varchar(5) set @v = 'AbC' select charindex('BC', @v)": [2],
    "declare @v varchar(5) set @v = 'AbC' select patindex('%bc', @v)": [2],
    "declare @v varchar(5) set @v = 'AbC' select replace(@v, 'B', '-')": ["A-C"],
    "declare @v varchar(5) set @v = 'AbC' select isnull(nullif(@v, 'ABC'), 'none')": ["none"],
    "declare @i int set @i = 5 select case when upper(convert(varchar(5), @i) + 'x') = '5x' then 1 end": [1],
    # a collation that is named
    "select case when 'a' = 'A' collate Latin1_General_BIN then 1 else 0 end": [0],
    "select case when 'a' = 'A' collate database_default then 1 else 0 end": [1],
    # columns
    "select id from items where name = 'ALPHA' order by id": [1, 3],
    "select id from items where name like 'alp%' order by id": [1, 3],
    "select id from items where code = 'AB'": [1],
    "select id from items where exact = 'alpha'": [],
    "select id from items where exact = 'ALPHA'": [3],
    "select id from items where upper(exact) = 'ALPHA' and exact <> 'ALPHA'": [1],
    "select id from items where name in ('BETA', 'x')": [2],
    "select count(*) from items group by name order by count(*)": [1, 2],
    "select count(distinct name) from items": [2],
    "select id from items order by name desc, id": [2, 1, 3],
    "select max(lower(name)) from items": ["beta"],
    "select a.id from items a join items b on a.code = b.code and b.name = 'BETA'": [2],
    # texts that become columns
    "select n from (select 1 n, 'x' v) d where v = 'X'": [1],
    "select count(*) from (select 'a' v union select 'A') d": [1],
    "select n from (values (1, 'a'), (2, 'B')) d (n, v) where v = 'b'": [2],
    "select count(*) from (select distinct case id when 1 then 'q' else 'Q' end v from items) d": [1],
    "select count(*) from items group by case id when 1 then 'q' else 'Q' end": [3],
    "select id from items order by case id when 1 then 'q' when 2 then 'P' else 'R' end": [2, 1, 3],
    "with c as (select 'Ab' v) select v from c where v = 'aB'": ["Ab"],
    "select id from items where 'ALPHA' in (select 'alpha') order by id": [1, 2, 3],
    "select count(*) from items where name in (select exact from items)": [3],
    "select min(case id when 1 then 'b' when 2 then 'A' else 'C' end) from items": ["A"],
    "select value from string_split('a,B', ',') where value = 'b'": ["B"],
    # conversions of no texts
    "select left(convert(char(9), id), 1) from items group by left(convert(char(9), id), 1) order by 1": [
        *("1", "2", "3")
    ],
    "select distinct 'n' + convert(varchar(9), id) from items order by 'n' + convert(varchar(9), id)": [
        *("n1", "n2", "n3")
    ],
    # tables of the session
    "create table #t (v varchar(5)) insert #t values ('a') select v from #t where v = 'A'": ["a"],
    "declare @t table (v varchar(5)) insert @t values ('a') select v from @t where v = 'A'": ["a"],
    "select 'a' v, 5 n into #i select v from #i where v = 'A'": ["a"],
    "create table #c (n int) insert #c select '5' select n from #c": [5],
}
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
    by_gateway = "" if way == "compiled" else "exec ('declare @x int') "
    text_here = text.replace("#", "#p")
    run(login, f"create procedure p_text as begin set nocount on {by_gateway}{text_here} end")
    try:
        assert first_column(login, "exec p_text") == TEXTS[text]
    finally:
        run(login, "drop procedure p_text")


COLLATION = "SQL_Latin1_General_CP1_CI_AS"

OBJECTS: dict[str, tuple[list[str], str, object]] = {
    "alter table": (
        ["create table t (n int)", "alter table t add v varchar(5) null", "insert t values (1, 'a')"],
        "select n from t where v = 'A'",
        1,
    ),
    "alter column": (
        [
            "create table t (v varchar(5) null)",
            "alter table t alter column v varchar(9)",
            "insert t values ('a')",
        ],
        "select v from t where v = 'A'",
        "a",
    ),
    "view": (
        [
            "create table t (n varchar(5))",
            "insert t values ('b')",
            "create view w as select 'x' v, upper(n) u from t",
        ],
        "select u from w where v = 'X' and u = 'b'",
        "B",
    ),
    "computed column": (
        ["create table t (v varchar(5), w as v + 'x')", "insert t (v) values ('a')"],
        "select v from t where w = 'AX'",
        "a",
    ),
    "check": (
        ["create table t (v varchar(5) check (v in ('M', 'F')))", "insert t values ('m')"],
        "select v from t",
        "m",
    ),
    "default": (
        ["create table t (n int, v varchar(5) default 'm')", "insert t (n) values (7)"],
        "select n from t where v = 'M'",
        7,
    ),
    "trigger": (
        [
            "create table t (v varchar(5))",
            "create table seen (n int)",
            "create trigger g on t for insert as insert seen select 1 from inserted where v = 'M'",
            "insert t values ('m')",
        ],
        "select n from seen",
        1,
    ),
    "user type": (
        [
            "exec sp_addtype name_type, 'varchar(5)'",
            "create table t (v name_type null)",
            "insert t values ('m')",
        ],
        "select v from t where v = 'M'",
        "m",
    ),
    "schema": (
        [
            "create schema inner_made",
            "create table inner_made.t (v varchar(5))",
            "insert inner_made.t values ('m')",
        ],
        "select v from inner_made.t where v = 'M'",
        "m",
    ),
    "another database": (
        [
            "use exact_made",
            "create table made..t (v varchar(5))",
            "create table t (v varchar(5))",
            "insert made..t values ('m') insert t values ('m')",
            "use made",
        ],
        "select 1 from made..t where v = 'M' union all select 2 from exact_made..t where v = 'M'",
        1,
    ),
    "in one text": (
        [
            "create database one_text collate Latin1_General_CI_AS use one_text create table t (v char(5))",
            "insert one_text..t values ('m')",
        ],
        "select rtrim(v) from one_text..t where v = 'M'",
        "m",
    ),
    "altered": (
        ["create database altered", "alter database altered collate Latin1_General_CI_AS", "use altered"],
        "select case when 'a' = 'A' then convert(varchar, databasepropertyex('altered', 'Collation')) end",
        "Latin1_General_CI_AS",
    ),
    "a key": (
        ["create table t (v varchar(5) not null primary key)", "insert t values ('m')"],
        "insert t values ('M')",
        2627,
    ),
    "a table's name": (["create table Made (a int)"], "create table mADE (b int)", 2714),
    "columns' names": ([], "create table t (a int, A int)", 2705),
    "a column's name": (["create table t (Name int)"], "select nAme, nam from T", 207),
    "not empty": (
        ["create table t (v varchar(5))"],
        "alter database made collate Latin1_General_BIN",
        5072,
    ),
    "not the caller's": ([], "alter database online collate Latin1_General_CI_AS", 5011),
    "an order of a language": ([], "create database danish collate Danish_Norwegian_CI_AS", 102),
    "trim": ([], "declare @v varchar(5) select trim('x' from @v)", 102),
}
"""what is made in the database `made`, a text, and its first value or error"""


FUNCTIONS: dict[str, tuple[str, str, object]] = {
    "value": (
        "create function made_f (@v varchar(5)) returns varchar(5)"
        " as begin if @v = 'A' return 'Yes' return @v end",
        "select case when dbo.made_f('a') = 'YES' then 1 end",
        1,
    ),
    "rows": (
        "create function made_f (@v varchar(5)) returns table"
        " as return select id, name from items where name = @v",
        "select count(*) from dbo.made_f('ALPHA')",
        2,
    ),
    "table": (
        "create function made_f () returns @t table (v varchar(5))"
        " as begin insert @t values ('a') return end",
        "select v from dbo.made_f() where v = 'A'",
        "a",
    ),
}


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
        "select serverproperty('Collation')",
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
        for place, text in enumerate(["ab ", "b", "   "], 1):
            given = [Param("int", str(place), "@seq_no"), Param("char", f"2026-01-0{place}", "@time")]
            answer = client.call("put_every_type", [*given, Param("char", text, "@a_varchar")])
            assert answer.errors == []
        said = client.language("exec put_every_type @seq_no = 4, @time = '2026-01-04', @a_varchar = 'ab '")
        assert said.errors == []
    rows = admin.execute(
        "select a_varchar from online.every_type where seq_no < 5 order by seq_no"
    ).fetchall()
    assert [text for (text,) in rows] == [*stored, stored[0]]
