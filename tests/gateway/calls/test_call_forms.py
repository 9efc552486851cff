"""Forms of call and query: parameterised text, prepared, dynamic statements, several in one request."""

import struct
import subprocess
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymssql
import pyodbc
import pytds
import pytest

import raw_tds
from raw_client import RawClient, logged_in7
from raw_replies import read_reply
from tds_clients import Admin, Clients, Param, errors_of, pytds_of, rows_of

HERE = Path(__file__).parent
BOTH = pytest.mark.parametrize("version", ["5.0", "7.4"])

SECOND_OF_OUTS = datetime(2024, 2, 3, 4, 5, 6, 123000)


@pytest.fixture(scope="module", autouse=True)
def call_forms(admin: Admin) -> Iterator[None]:
    """The functions and the table of call_forms.sql."""
    admin.execute((HERE / "call_forms.sql").read_bytes())
    yield
    admin.execute("drop schema call_forms cascade")
    admin.execute("notify ringlog_catalogue")


@pytest.fixture(autouse=True)
def no_things(admin: Admin) -> None:
    admin.execute("delete from call_forms.things")


def rows(cursor: pyodbc.Cursor) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in cursor.fetchall()]


def things(admin: Admin) -> list[tuple[Any, ...]]:
    return admin.execute("select * from call_forms.things order by id").fetchall()


# --- ODBC: sp_prepare, sp_execute and sp_prepexec at 7.4, dynamic statements at 5.0 ---


@BOTH
def test_odbc_passes_parameters(clients: Clients, version: str) -> None:
    with clients.odbc(clients.server.writer, version) as connection:
        cursor = connection.cursor()
        query = "select i, v from call_forms.rows(10) where i > ? and v like ?"
        assert rows(cursor.execute(query, (8, "row %"))) == [(9, "row 9"), (10, "row 10")]
        assert rows(cursor.execute("select ? as a, ? as b", (1, "it's"))) == [(1, "it's")]
        assert cursor.execute("select count(*) from call_forms.rows(?)", (5,)).fetchval() == 5
        # the same statement again, with other values
        for n in (3, 4):
            assert cursor.execute("select max(i) from call_forms.rows(?)", (n,)).fetchval() == n


@BOTH
def test_odbc_writes_many_rows(clients: Clients, admin: Admin, version: str) -> None:
    given = [(n, f"thing {n}", n / 4, datetime(2024, 1, n), n % 2 == 0) for n in range(1, 6)]
    with clients.odbc(clients.server.writer, version) as connection:
        connection.cursor().executemany("insert into call_forms.things values (?, ?, ?, ?, ?)", given)
    assert things(admin) == given


@BOTH
def test_odbc_calls(clients: Clients, version: str) -> None:
    with clients.odbc(clients.server.writer, version) as connection:
        cursor = connection.cursor()
        two = [(1, "row 1", 0.5), (2, "row 2", 1.0)]
        assert rows(cursor.execute("{call call_forms.rows(?)}", (2,))) == two
        assert rows(cursor.execute("exec call_forms.rows ?", (1,))) == two[:1]
        with pytest.raises(pyodbc.Error, match="negative -1"):
            cursor.execute("{call call_forms.stat(?)}", (-1,))
        assert cursor.execute("select 1").fetchval() == 1


@BOTH
def test_odbc_describes_before_it_executes(clients: Clients, version: str) -> None:
    """The columns that sp_prepare and a dynamic statement describe are those of the rows."""
    with clients.odbc(clients.server.writer, version) as connection:
        cursor = connection.cursor()
        cursor.execute("select i as number, f as half from call_forms.rows(?)", (1,))
        assert [column[0] for column in cursor.description] == ["number", "half"]


def test_a_text_gets_the_type_of_its_context(clients: Clients, admin: Admin) -> None:
    """T-SQL converts a text to the type of the other operand; a text alone remains a text."""
    admin.execute("insert into call_forms.things values (1, 'one', 1.5, '2024-02-03 04:05', true)")
    with clients.odbc(clients.server.writer, "7.4") as connection:
        cursor = connection.cursor()
        for column, value in {"id": "1", "size": "1.5", "since": "Feb 3 2024 4:05AM", "name": "one"}.items():
            assert (
                cursor.execute(f"select id from call_forms.things where {column} = ?", (value,)).fetchval()
                == 1
            )
        assert cursor.execute("select ?", ("1",)).fetchval() == "1"
        assert cursor.execute("select id from call_forms.things where good = ?", (1,)).fetchval() == 1
        with pytest.raises(pyodbc.Error, match="'one' to data type int"):
            cursor.execute("select id from call_forms.things where id = ?", ("one",))


def test_decimals_keep_their_digits(clients: Clients) -> None:
    with clients.odbc(clients.server.writer, "7.4") as connection:
        cursor = connection.cursor()
        for value in (Decimal("12.50"), Decimal("-0.00001"), Decimal("1" * 38)):
            assert cursor.execute("select ?", (value,)).fetchval() == value


def test_nulls_of_every_type(clients: Clients) -> None:
    with pytds_of(clients.server, clients.server.writer) as connection, connection.cursor() as cursor:
        cursor.execute("select %s as a, %s as b", (None, 1))
        assert cursor.fetchall() == [(None, 1)]
        cursor.execute("select id from call_forms.things where name = %s and size = %s", (None, None))
        assert cursor.fetchall() == []


# --- sp_executesql and similar calls ---


def test_python_tds(clients: Clients) -> None:
    with pytds_of(clients.server, clients.server.writer) as connection, connection.cursor() as cursor:
        cursor.execute("select i from call_forms.rows(10) where i > %s", (8,))
        assert cursor.fetchall() == [(9,), (10,)]
        given = [1, pytds.output("x", str), pytds.output(None, float), pytds.output(None, datetime)]
        assert cursor.callproc("call_forms.outs", given) == [1, "x!", 1.5, SECOND_OF_OUTS]
        cursor.execute("exec call_forms.rows %s", (1,))
        assert cursor.fetchall() == [(1, "row 1", 0.5)]


def test_outputs_of_a_call_inside_a_text(clients: Clients) -> None:
    """`EXEC @P0 = p @P1, @P2 OUT` as sent by the JDBC driver."""
    declared = "@P0 int OUT, @P1 int, @P2 varchar(30) OUT, @P3 float OUT, @P4 datetime OUT"
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        outputs = [
            pymssql.output(int),
            4,
            pymssql.output(str, "x"),
            pymssql.output(float),
            pymssql.output(datetime),
        ]
        text = "EXEC @P0 = call_forms.stat @P1 EXEC call_forms.outs @P1, @P2 OUT, @P3 OUT, @P4 OUT"
        result = cursor.callproc("sp_executesql", (text, declared, *outputs))
        cursor.fetchall() if cursor.description else None
        assert result[2:] == (4, 4, "x!", 6.0, SECOND_OF_OUTS)


def test_a_select_assigns_outputs(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        text = "select @n = count(*), @last = max(v) from call_forms.rows(7)"
        result = cursor.callproc(
            "sp_executesql",
            (text, "@n int output, @last varchar(20) output", pymssql.output(int), pymssql.output(str)),
        )
        assert result[2:] == (7, "row 7")


def test_a_temporary_table_ends_with_the_call(clients: Clients) -> None:
    """A temporary table made by a text of sp_executesql belongs to that text (CREATE TABLE, "Temporary
    tables")."""
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("create table #kept (a int)")
        text = "create table #made (a int) insert #made values (5) insert #kept select a + @p from #made"
        cursor.callproc("sp_executesql", (text, "@p int", 2))
        assert rows_of(cursor, "select a, object_id('tempdb..#made') from #kept") == [(7, None)]


def test_prepared_by_name(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        text = "select i from call_forms.rows(9) where i > @p"
        handle = cursor.callproc("sp_prepare", (pymssql.output(int), "@p int", text))[0]
        assert handle > 0
        for least, expected in ((8, [(9,)]), (7, [(8,), (9,)])):
            cursor.callproc("sp_execute", (handle, least))
            assert cursor.fetchall() == expected
        cursor.callproc("sp_unprepare", (handle,))
        for gone in ("sp_execute", "sp_unprepare"):
            with pytest.raises(pymssql.Error) as refused:
                cursor.callproc(gone, (handle, 1)[: 1 + (gone == "sp_execute")])
            assert errors_of(refused.value).number == 8179


def test_prepare_and_execute_by_number(clients: Clients) -> None:
    """sp_prepexec, sp_execute and sp_unprepare as drivers call them; the handle follows the rows."""

    def call(number: int, *params: bytes) -> bytes:
        return raw_tds.HEADERS + b"\xff\xff" + number.to_bytes(2, "little") + bytes(2) + b"".join(params)

    def text(value: str) -> bytes:
        raw = value.encode("utf-16-le")
        return b"\0\0\xe7\x40\x1f" + bytes(5) + len(raw).to_bytes(2, "little") + raw

    def integer(value: int) -> bytes:
        return b"\0\0\x26\x04\x04" + value.to_bytes(4, "little")

    with logged_in7(clients.server, clients.server.reader) as client:
        handle = b"\0\1\x26\x04\0"
        client.send(raw_tds.RPC7, call(13, handle, text("@p int"), text("select @p as a"), integer(7)))
        columns = b"\x81\1\0" + bytes(4) + b"\1\0\x26\x04\1a\0"
        status = b"\x79" + bytes(4)
        returned = b"\xac" + bytes(3) + b"\1" + bytes(4) + b"\1\0\x26\x04\x04\1\0\0\0"
        done = b"\xfe\0\0\xe0\0" + bytes(8)

        def rows(*values: int) -> bytes:
            found = b"".join(b"\xd1\x04" + value.to_bytes(4, "little") for value in values)
            return columns + found + b"\xff\x11\0\xc1\0" + len(values).to_bytes(8, "little")

        assert client.receive() == rows(7) + status + returned + done
        client.send(raw_tds.RPC7, call(12, integer(1), integer(8)))
        assert client.receive() == rows(8) + status + done
        client.send(raw_tds.RPC7, call(15, integer(1)))
        assert client.receive() == status + done
        client.send(raw_tds.RPC7, call(12, integer(1), integer(8)))
        assert "handle 1".encode("utf-16-le") in client.receive()
        # RETURN_METADATA: of several statements the first one's columns (FreeTDS, prepare_results.c)
        several = text("select i as a from call_forms.rows(@p) select i, f from call_forms.rows(@p)")
        client.send(raw_tds.RPC7, call(11, handle, text("@p int"), several, integer(1)))
        assert client.receive().startswith(columns + b"\xff")


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (("select @p", "@p int"), 8178),
        (("select @p", "@p int", 1, 2), 8144),
        (("select @q", "@p int", 1), 137),
        (("select @p", "@p nonsense", 1), 2715),
        (("select i from call_forms.rows(3) where i = @p", "@p varchar(9)", "none"), 245),
        ((None,), 214),
    ],
)
def test_texts_with_wrong_parameters_are_refused(
    clients: Clients, given: tuple[Any, ...], number: int
) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        with pytest.raises(pymssql.Error) as refused:
            cursor.callproc("sp_executesql", given)
        assert errors_of(refused.value).number == number
        assert rows_of(cursor, "select 1") == [(1,)]


def test_prepared_statements_survive_ddl(clients: Clients, admin: Admin) -> None:
    """PostgreSQL's `cached plan must not change result type` does not reach the client."""
    admin.execute("create table call_forms.changing (a integer); insert into call_forms.changing values (1)")
    admin.execute("grant select on call_forms.changing to daq_reader")
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        given = ("select * from call_forms.changing where a = @p", "@p int", 1)
        cursor.callproc("sp_executesql", given)
        assert cursor.fetchall() == [(1,)]
        admin.execute("alter table call_forms.changing add b integer default 2")
        cursor.callproc("sp_executesql", given)
        assert cursor.fetchall() == [(1, 2)]


def test_parameters_inside_a_transaction(clients: Clients, admin: Admin) -> None:
    """A statement that is tried with other types does not affect the transaction."""
    with clients.odbc(clients.server.writer, "7.4") as connection:
        connection.autocommit = False
        cursor = connection.cursor()
        cursor.execute("insert into call_forms.things (id, good) values (?, ?)", (1, 1))
        with pytest.raises(pyodbc.IntegrityError):
            cursor.execute("insert into call_forms.things (id, good) values (?, ?)", (1, 1))
        cursor.execute("insert into call_forms.things (id, name) values (?, ?)", (2, "two"))
        connection.commit()
    assert [row[0] for row in things(admin)] == [1, 2]


# --- text with variables ---


@BOTH
def test_variables_of_a_batch(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(
            "declare @r int, @b varchar(30), @c float, @d datetime "
            "set @b = 'x' exec @r = call_forms.stat 5 "
            "exec call_forms.outs 2, @b output, @c output, @d output "
            "select @r, @b b, @c"
        )
        assert answer.rows == [["5", "x!", "3"]]
        assert answer.columns == ["", "b", ""]
        assert [message.text for message in answer.messages] == ["a is 2"]
        # at 5.0 a call in a text sends its outputs, as ASE does
        assert list(answer.outputs.values())[:2] == (["x!", "3"] if version == "5.0" else [])
        answer = client.language(
            "declare @n int select @n = max(i) from call_forms.rows(4) print @n exec ('select 1 as a')"
        )
        assert (answer.rows, answer.messages[-1].text) == ([["1"]], "4")
        answer = client.language(
            "declare @x int = 3 select i from call_forms.rows(9) where i < @x and @@spid > 0"
        )
        assert answer.rows == [["1"], ["2"]]


def test_a_command_with_parameters_at_5(clients: Clients) -> None:
    """LANGUAGE followed by PARAMFMT and PARAMS."""
    with RawClient(clients.server.host, clients.server.port) as client:
        assert client.log_in5(clients.server.reader).login == 5
        call = raw_tds.dbrpc("x", [raw_tds.Param(raw_tds.INT4, 8, "@least")])
        text = b"\1select i from call_forms.rows(9) where i > @least"
        command = b"\x21" + len(text).to_bytes(4, "little") + text + call[call.index(b"\xec") :]
        client.send(raw_tds.NORMAL, command)
        reply = read_reply(client.receive())
        assert (reply.rows, reply.errors) == ([[9]], [])


# --- dynamic statements of TDS 5.0 ---


def test_dynamic_statements(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        prepared = client.prepare("one", "select i, v from call_forms.rows(10) where i > ? and v like ?")
        assert (prepared.messages, prepared.end) == ([], "results")
        int_type, char_type, longchar_type = 8, 0, 4
        assert client.describe("in", "one").description == [("", int_type), ("", char_type)]
        assert client.describe("out", "one").description == [("i", int_type), ("v", longchar_type)]
        for least, expected in (("8", ["9", "10"]), ("9", ["10"])):
            answer = client.execute("one", [Param("int", least), Param("char", "row %")])
            assert [row[0] for row in answer.rows] == expected
        # of two queries the first is described (FreeTDS, src/odbc/unittests/prepare_results.c)
        client.prepare("two", "select i from call_forms.rows(10) where i = ? select 'x' as x")
        assert client.describe("in", "two").description == [("", int_type)]
        assert client.describe("out", "two").description == [("i", int_type)]
        assert client.execute("two", [Param("int", "3")]).rows == [["3"], ["x"]]
        # values of other types than PostgreSQL inferred
        answer = client.execute("one", [Param("float", "8.5"), Param("char", "row %")])
        assert [row[0] for row in answer.rows] == ["9", "10"]
        assert client.close_dynamic("one").messages == []
        assert client.language("select 1").rows == [["1"]]


def test_dynamic_calls(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        assert client.prepare("two", "exec call_forms.outs ?, ? output, ? output, ? output").messages == []
        int_type, char_type, float_type, bigdatetime_type = 8, 0, 10, 35
        described = [type for _, type in client.describe("in", "two").description]
        assert described == [int_type, char_type, float_type, bigdatetime_type]
        params = [Param("int", "1"), Param("char:30", "x", out=True), Param("float", "1", out=True)]
        answer = client.execute("two", [*params, Param("datetime", "1 1", out=True)])
        assert list(answer.outputs.values())[:2] == ["x!", "1.5"]
        assert (answer.statuses, [message.text for message in answer.messages]) == ([0], ["a is 1"])


def test_invalid_dynamic_statements(clients: Clients) -> None:
    with clients.ct(clients.server.reader) as client:
        assert client.prepare("bad", "select a from nowhere where b = ?").error.number == 208
        assert client.language("select 1").rows == [["1"]]


DBI = Path(__file__).with_name("call_forms.pl").read_text()


def test_dbd_sybase(clients: Clients, admin: Admin) -> None:
    server = clients.server
    done = subprocess.run(
        ["perl", "-e", DBI, "5.0", str(server.port), server.writer.user],
        input=server.writer.password + "\n",
        env={"FREETDSCONF": str(clients.configuration), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["9 row 9,10 row 10", "10 row 10"], done.stderr
    assert lines[2] == "0;x! 4.5 2024-02-03 04:05:06.123", done.stderr
    assert lines[3] == "refused"
    assert [row[:3] for row in things(admin)] == [
        (1, "thing 1", 0.5),
        (2, "thing 2", 1.0),
        (3, "thing 3", 1.5),
    ]


# --- several calls in one request ---


def test_an_error_that_ends_the_batch_ends_the_calls_of_a_request(clients: Clients) -> None:
    """jTDS, BatchTest.testPrepStmtBatch: after a value that cannot be converted SQL Server runs no further
    call of a request, after other errors it does; ASE continues.
    """

    def execute(text: str) -> bytes:
        raw = text.encode("utf-16-le")
        return raw_tds.rpc7(
            "sp_executesql", [("", b"\xe7\x40\x1f\x09\x04\xd0\0\x34" + struct.pack("<H", len(raw)) + raw)]
        )

    with logged_in7(clients.server, clients.server.reader) as client:

        def answer(*texts: str) -> bytes:
            calls = [execute(text) for text in texts]
            client.send(raw_tds.RPC7, calls[0] + b"".join(b"\xff" + call[22:] for call in calls[1:]))
            return client.receive()

        seven = b"\xd1\x04\x07\0\0\0"
        assert seven not in answer("select convert(int, 'x')", "select 7")
        assert seven in answer("select 1 / 0", "select 7")


def test_several_calls_in_one_request(clients: Clients) -> None:
    """7.4: calls separated by 0xFF; 5.0: one token after another."""
    with logged_in7(clients.server, clients.server.reader) as client:
        one = raw_tds.rpc7("call_forms.stat", [("", b"\x26\x04\x04\x07\x00\x00\x00")])
        two = raw_tds.rpc7("call_forms.stat", [("", b"\x26\x04\x04\x08\x00\x00\x00")])[22:]
        client.send(raw_tds.RPC7, one + b"\xff" + two)
        statuses = [b"\x79" + n.to_bytes(4, "little") for n in (7, 8)]
        done = b"\xfe\x00\x00\xe0\x00" + bytes(8)
        done_with_more = b"\xfe\x01\x00\xe0\x00" + bytes(8)
        assert client.receive() == statuses[0] + done_with_more + statuses[1] + done
    with RawClient(clients.server.host, clients.server.port) as client:
        client.log_in5(clients.server.reader)
        calls = [raw_tds.dbrpc("call_forms.stat", [raw_tds.Param(raw_tds.INT4, n)]) for n in (7, -1, 8)]
        client.send(raw_tds.NORMAL, b"".join(calls) + raw_tds.language("select 9"))
        reply = read_reply(client.receive())
        assert (reply.statuses, reply.rows, len(reply.errors)) == ([7, 8], [[9]], 1)
        more = 1
        assert [status & more for status, _ in reply.done] == [1, 1, 1, 0]
