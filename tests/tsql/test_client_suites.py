"""Procedures as the test suites of pymssql, ctds, jTDS, tedious and FreeTDS send and call them."""

import decimal
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pymssql
import pytest
from pymssql import _mssql

from authors import author_with_schema
from servers import Login, RunningServer
from tds_clients import Clients, error_number, rows_of

AUTHOR = Login("suite_author", "suite")


@pytest.fixture(scope="module")
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """Clients of a login that may create procedures in its own schema."""
    directory = tmp_path_factory.mktemp("suites")
    with author_with_schema(server, AUTHOR, "suite"):
        yield Clients.of(server, directory / "none", directory)


@pytest.fixture
def connection(clients: Clients) -> Iterator[pymssql.Connection]:
    with clients.pymssql(AUTHOR, database="suite") as connection:
        yield connection


AHEAD_OF_TOKYO = timezone(timedelta(hours=11, minutes=30))

TYPES = [
    ("bigint", _mssql.SQLINT8, 123456789),
    ("bit", _mssql.SQLBITN, True),
    ("datetime", _mssql.SQLDATETIME, datetime(2009, 8, 27, 15, 28, 38)),
    ("datetimeoffset", _mssql.SQLDATETIMEOFFSET, datetime(2999, 12, 31, 23, 59, 59, 999999, AHEAD_OF_TOKYO)),
    ("decimal(6, 5)", _mssql.SQLDECIMAL, decimal.Decimal("5.12345")),
    ("int", _mssql.SQLINT4, 10056),
    ("money", _mssql.SQLMONEY, decimal.Decimal("5.12")),
    ("numeric(6, 5)", _mssql.SQLNUMERIC, decimal.Decimal("5.12345")),
    ("smallint", _mssql.SQLINT2, 10056),
    ("tinyint", _mssql.SQLINT1, 101),
    ("char(4)", _mssql.SQLCHAR, "test"),
    ("varchar(4)", _mssql.SQLVARCHAR, "test"),
    ("text", _mssql.SQLTEXT, "test"),
]


@pytest.mark.parametrize(("declared", "sent", "value"), TYPES, ids=[name for name, *_ in TYPES])
def test_types_of_pymssql(connection: pymssql.Connection, declared: str, sent: int, value: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE OR ALTER PROCEDURE [dbo].[pymssqlTest]
                @ivalue {declared},
                @ovalue {declared} output
            AS
            BEGIN
                SET @ovalue = @ivalue;
                RETURN 0;
            END
            """
        )
        procedure = connection._conn.init_procedure("pymssqlTest")
        procedure.bind(value, sent, "@ivalue")
        out = _mssql.SQLVARCHAR if sent == _mssql.SQLTEXT else sent
        length = 6 if isinstance(value, str) else -1
        before = {bool: False, decimal.Decimal: decimal.Decimal("0.00000")}.get(type(value))
        procedure.bind(before, out, "@ovalue", output=True, max_length=length)
        assert procedure.execute() == 0
        got = procedure.parameters["@ovalue"]
        assert (decimal.Decimal(got) if declared == "money" else got) == value
        cursor.execute("DROP PROCEDURE [dbo].[pymssqlTest]")


def test_texts_of_pymssql(connection: pymssql.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE PROCEDURE [dbo].[someProcWithOneParam]
                @some_arg NVARCHAR(64)
            AS
            BEGIN
                SELECT @some_arg + N'!',
                       N'Здравствуй ' + @some_arg + N' Мир'
            END
            """
        )
        for sent, expected in [
            (None, (None, None)),
            ("hello", ("hello!", "Здравствуй hello Мир")),
            ("Привет", ("Привет!", "Здравствуй Привет Мир")),
        ]:
            cursor.callproc("someProcWithOneParam", (sent,))
            assert list(cursor) == [expected]
            cursor.execute("someProcWithOneParam %s", (sent,))
            assert cursor.fetchone() == expected
        cursor.execute("DROP PROCEDURE [dbo].[someProcWithOneParam]")


def test_definitions_of_ctds(connection: pymssql.Connection) -> None:
    drop = """
        IF EXISTS (
            SELECT 1
            FROM sys.objects
            WHERE object_id = OBJECT_ID(N'{0}')
        )
        BEGIN
            DROP PROCEDURE {0};
        END
        """
    bodies = {
        "test_sql_exception": "AS\n  RAISERROR (N'some custom error %s', 12, 111, 'hello!');",
        "test_sql_raiseerror_warning": """AS
            RAISERROR (N'some custom error %s', 16, -1, 'hello!');
            SELECT 1 As SomeResult""",
        "test_sql_print": "@pMsg VARCHAR(MAX)\nAS\n  PRINT(@pMsg);",
        "test_output": """@pInt TINYINT OUTPUT, @pBigInt BIGINT OUTPUT
            AS
            SELECT @pInt = @pInt * 2;
            SELECT @pBigInt = @pBigInt - 1000;""",
    }
    with connection.cursor() as cursor:
        for _ in range(2):
            for name, body in bodies.items():
                cursor.execute(drop.format(name))
                cursor.execute(f"CREATE PROCEDURE {name}\n{body}")
        with pytest.raises(pymssql.Error) as raised:
            cursor.callproc("test_sql_exception")
        assert raised.value.args[0] == 50000
        assert b"some custom error hello!" in raised.value.args[1]
        cursor.execute("SELECT @@VERSION")
        assert cursor.fetchall()
        # pymssql sends no values of outputs by RPC
        cursor.execute("declare @a int = 10, @b bigint = 1234 exec test_output @a out, @b out select @a, @b")
        assert cursor.fetchall() == [(20, 234)]
        with pytest.raises(pymssql.Error) as raised:
            cursor.callproc("test_output", (256, 1))
        assert raised.value.args[0] in (8114, 8115, 220)
        for name in bodies:
            cursor.execute(f"DROP PROCEDURE {name}")


def test_result_sets_and_status_of_jtds_and_tedious(connection: pymssql.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """create procedure multi1withcount as
            declare @dummy varchar(10)
            select 'a' union all select 'b'
            select 'c'
            set nocount on
            select @dummy = 'x'
            return 7"""
        )
        cursor.callproc("multi1withcount")
        assert cursor.fetchall() == [("a",), ("b",)]
        assert cursor.nextset()
        assert cursor.fetchall() == [("c",)]
        assert not cursor.nextset()
        cursor.execute("declare @s int exec @s = multi1withcount select @s")
        assert cursor.nextset()
        assert cursor.nextset()
        assert cursor.fetchall() == [(7,)]
        cursor.execute("exec sp_sproc_columns multi1withcount")
        assert [row[3] for row in cursor.fetchall()] == ["@RETURN_VALUE"]
        cursor.execute(
            "create proc p @param1 varchar(30) = 'x', @param2 int output as select @param2 = len(@param1)"
        )
        cursor.execute("exec sp_sproc_columns p")
        assert [row[3:5] for row in cursor.fetchall()] == [
            ("@RETURN_VALUE", 5), ("@param1", 1), ("@param2", 2),
        ]  # fmt: skip
        cursor.execute("declare @n int exec p @param2 = @n output select @n exec p 'four', @n out select @n")
        assert cursor.fetchall() == [(1,)]
        assert cursor.nextset()
        assert cursor.fetchall() == [(4,)]


def test_procedures_of_freetds(clients: Clients) -> None:
    """src/ctlib and src/dblib of FreeTDS: several outputs, result sets and a status, at 5.0 as well."""
    text = """create procedure rpc_test
        @null_input varchar(30) output
      , @first_type varchar(30) output
      , @nullout int output
      , @nrows int output
      , @c varchar(20)
    as
    begin
        select @null_input = max(name) from #types
        select @first_type = min(name) from #types
        select name from #types where 0 = 1
        select distinct name from #types where name like 'i%'
        select @nrows = @@rowcount
        select name from #types order by name
        select @nrows = @nrows + @@rowcount
        return 42
    end"""
    fill = "create table #types (name varchar(30)) insert #types values ('int') insert #types values ('bit')"
    call = """declare @a varchar(30), @b varchar(30), @n int, @r int, @s int
        exec @s = rpc_test @a output, @b output, @n output, @r output, 'x'
        select @a as a, @b as b, @n as n, @r as r, @s as s"""
    for section in ("5.0", "7.4"):
        answer = clients.tsql(
            AUTHOR, text, fill, call, "drop procedure rpc_test", section=section, database="suite"
        )
        assert answer.errors == []
        assert answer.rows[-1] == ["int", "bit", "NULL", "3", "42"]
        assert answer.rows[-6:-2] == [["int"], ["name"], ["bit"], ["int"]]


def test_a_procedure_that_only_writes_finds_the_callers_temporary_table(
    connection: pymssql.Connection,
) -> None:
    """jTDS, BatchTest.testCallStmtBatch."""
    with connection.cursor() as cursor:
        cursor.execute("create procedure fill_callers @n int as insert #callers values (@n)")
        cursor.execute("create table #Callers (n int)")
        cursor.callproc("fill_callers", (7,))
        assert rows_of(cursor, "exec fill_callers 8 select n from #callers order by n") == [(7,), (8,)]
        # in the case of the text or another
        cursor.execute("select object_id('tempdb..#Callers') - object_id('tempdb..#callers')")
        assert cursor.fetchone() == (0,)
        cursor.execute("drop procedure fill_callers")


def test_a_trigger_does_not_fire_itself(connection: pymssql.Connection) -> None:
    """tedious, "fires triggers"; CREATE TRIGGER, "Recursive triggers": a trigger that changes its own table
    is not fired again (RECURSIVE_TRIGGERS OFF), those of other tables are; at most 32 levels (217)."""
    with connection.cursor() as cursor:
        cursor.execute("create table first_one (n int) create table second_one (n int)")
        cursor.execute(
            "create trigger doubles on first_one after insert as"
            " insert first_one select n + 1 from inserted insert second_one select n from inserted"
        )
        cursor.execute("create trigger counts on second_one after insert as update second_one set n = n + 1")
        cursor.execute("insert first_one values (1)")
        cursor.execute("insert first_one values (5)")
        assert rows_of(cursor, "select n from first_one order by n") == [(1,), (2,), (5,), (6,)]
        assert rows_of(cursor, "select n from second_one order by n") == [(3,), (6,)]
        cursor.execute("create trigger returns on second_one after update as insert first_one values (0)")
        assert error_number(cursor, "insert first_one values (9)") == 217
        cursor.execute("drop table first_one drop table second_one")


def test_columns_of_a_view_keep_their_names(connection: pymssql.Connection) -> None:
    with connection.cursor() as cursor:
        for text, name in [("as select 1 as ColA", "ColA"), ("(ColB) as select 1", "ColB")]:
            cursor.execute(f"create view named_view {text}")
            cursor.execute("select * from named_view")
            assert [shown for shown, *_ in cursor.description] == [name]
            cursor.execute("drop view named_view")
