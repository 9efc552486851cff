"""Text: calls, queries and session settings as written by users and drivers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import ctds
import pymssql
import pytest
from case_tables import cases, plain
from talks import hold, talks

from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import NORMAL, dbrpc, language
from servers import RunningServer
from tds_clients import PLAIN, Admin, Clients, ctds_of, errors_of, rows_of

pytestmark = pytest.mark.usefixtures("functions")
Unchanged = Callable[[], AbstractContextManager[None]]
THREE = ["5.0", "7.1", "7.4"]
VERSIONS = pytest.mark.parametrize("version", THREE)
ROW_1 = "exec put_every_type 1, '2024-05-06 07:08:09', 1.5, 2.5, 3, 4, 5, 1, 'words'"


def stored(admin: Admin, seq_no: int) -> tuple[object, ...]:
    row = admin.execute(f"select * from online.every_type where seq_no = {seq_no}").fetchone()
    assert row is not None
    return row[2:]


@VERSIONS
def test_exec_put_get_and_select_with_tsql(clients: Clients, admin: Admin, version: str) -> None:
    """Text typed by a user."""
    put = clients.tsql(clients.server.writer, ROW_1, section=version)
    assert (put.statuses, put.messages, put.rows) == ([0], [], [])
    assert stored(admin, 1) == (1.5, 2.5, 3, 4, 5, True, "words")
    got = clients.tsql(
        clients.server.reader,
        "exec get_every_type 1",
        "select seq_no, a_real, a_varchar from every_type where seq_no = 1",
        section=version,
    )
    assert got.messages == []
    assert got.statuses == [0]
    assert got.rows[0][2:] == [
        "a_real",
        "a_double",
        "an_int",
        "a_smallint",
        "a_bigint",
        "a_bit",
        "a_varchar",
    ]
    assert got.rows[1][0] == "1"
    assert got.rows[1][2:] == ["1.5", "2.5", "3", "4", "5", "1", "words"]
    assert got.rows[2:] == [["seq_no", "a_real", "a_varchar"], ["1", "1.5", "words"]]


@VERSIONS
def test_a_row_of_200_columns_as_text(clients: Clients, admin: Admin, version: str) -> None:
    seq_no = THREE.index(version) + 1
    currents = [n / 8 for n in range(200)]
    by_place = f"exec put_sr_mag_ps {seq_no}, '2024-05-06 07:08:09', {', '.join(map(str, currents))}"
    by_name = f"exec put_sr_mag_ps @time = '2024-05-06 07:08:09', @seq_no = {seq_no}, " + ", ".join(
        f"@current_{n} = {value}" for n, value in enumerate(currents, 1)
    )
    with clients.ct(clients.server.writer, version) as client:
        for text in (by_place, by_name):
            assert client.language(text).statuses == [0], "the same row again is absorbed"
    row = admin.execute(f"select * from online.sr_mag_ps where seq_no = {seq_no}").fetchone()
    assert row is not None
    assert list(row[2:]) == currents


@pytest.mark.parametrize(("argument", "parameter", "value"), cases(__file__, "literals"))
def test_literals(clients: Clients, argument: str, parameter: str, value: str) -> None:
    column = "o_" + parameter.split("_", 1)[1]
    for version in ("5.0", "7.4"):
        with clients.ct(clients.server.reader, version) as client:
            answer = client.language(f"exec echo_rows {argument}")
            assert answer.errors == []
            index = answer.columns.index(column)
            (row,) = answer.rows
            assert all(other is None for other in row[:index] + row[index + 1 :])
            received = row[index]
            if parameter in ("@a_date", "@a_timestamp", "@a_timestamptz", "@a_bit", "@a_numeric"):
                # as PostgreSQL itself displays it, whatever form the dialect has for it
                shown = client.language(f"exec shown {argument}")
                assert shown.errors == []
                received = shown.rows[0][0]
            assert received == plain(value)


@pytest.mark.parametrize("version", ["5.0", "7.1", "7.2", "7.3", "7.4"])
def test_select_of_every_type_with_tsql(clients: Clients, version: str) -> None:
    answer = clients.tsql(clients.server.reader, "select * from gateway_test.types", section=version)
    assert answer.errors == []
    values = dict(zip([str(name) for name in answer.rows[0]], answer.rows[1], strict=True))
    assert len(values) == 16
    expected = {
        "a_bit": "1",
        "a_smallint": "-32768",
        "an_int": "-2147483648",
        "a_bigint": "9223372036854775807",
        "a_float": "0.10000000000000001",
        "a_numeric": "-12345678901234.5678",
        "a_varchar": "häuser",
        "a_char": "ab   ",
        "a_text": "a text of any length",
    }
    assert {name: values[name] for name in expected} == expected
    assert str(values["a_bytea"]).lower() == "0001ff"
    assert str(values["a_real"]).startswith("1.175494")
    assert str(values["a_uuid"]).lower() == "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    if version != "5.0":
        assert "Jan  1 1753" in str(values["a_date"]) or "1753-01-01" in str(values["a_date"])
    assert "Feb 29 2024" in str(values["a_timestamp"]) or "2024-02-29" in str(values["a_timestamp"])
    assert set(answer.rows[2]) == {"NULL"}


@talks(__file__)
def test_talks(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)


def test_use_before_anything_else_with_pymssql(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("use log")
        assert rows_of(cursor, "select current_schema()") == [("log",)]


@VERSIONS
def test_a_reader_may_not_put(clients: Clients, nothing_written: Unchanged, version: str) -> None:
    with nothing_written():
        answer = clients.tsql(clients.server.reader, ROW_1, section=version)
    assert answer.error[:] == (
        229,
        14,
        "permission denied for function put_every_type (login reader, SQLSTATE 42501)",
    )


@VERSIONS
@pytest.mark.parametrize("right", ["reader", "writer"])
@pytest.mark.parametrize("text", cases(__file__, "no_login_may_write_without_the_procedures"))
def test_no_login_may_write_without_the_procedures(
    clients: Clients, nothing_written: Unchanged, version: str, right: str, text: str
) -> None:
    login = clients.server.reader if right == "reader" else clients.server.writer
    with nothing_written():
        answer = clients.tsql(login, text, section=version)
    assert answer.error[:2] == (229, 14)
    assert "permission denied" in answer.error.text


REFUSED = cases(__file__, "refused")


@pytest.mark.parametrize("text", REFUSED)
def test_unsupported_constructs_are_named(clients: Clients, nothing_written: Unchanged, text: str) -> None:
    with clients.ct(clients.server.writer) as client:
        with nothing_written():
            answer = client.language(text)
        error = answer.error
        assert error.severity > 10
        assert error.number in (102, 105, 134, 137, 141, 195, 243, 2715)
        assert REFUSED[text] in error.text
        assert (answer.rows, answer.statuses, answer.failed) == ([], [], True)
        assert client.language("select 1 as one").rows == [["1"]], "the connection goes on"


@VERSIONS
@pytest.mark.parametrize(("text", "number"), cases(__file__, "errors_of_queries"))
def test_errors_of_queries(clients: Clients, version: str, text: str, number: int) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(text)
        assert answer.error.number == number
        # with T-SQL's text, if there is one
        assert "SQLSTATE" not in answer.error.text
        assert client.language("select 1 as one").rows == [["1"]]


def test_a_nul_in_text_is_refused(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        for text in ("select 'a\0b'", "exec status '1\0'", "use [lo\0g]"):
            reply = client.language(text)
            assert [error.number for error in reply.errors] == [102]
            assert "NUL" in reply.errors[0].text
        assert client.language("select 1 as one").rows == [[1]]


def test_several_requests_in_one_message(server: RunningServer) -> None:
    """TDS 5.0 allows tokens of several commands in one message; each is answered, the last ends the reply."""
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        client.send(
            NORMAL, dbrpc("small_status") + dbrpc("no_such") + dbrpc("one_value") + language("select 2")
        )
        reply = read_reply(client.receive())
        assert (reply.statuses, reply.rows[0]) == ([7, 0], ["a value"])
        assert [error.number for error in reply.errors] == [2812]
        more = [status & 1 for status, _ in reply.done]
        assert more == [1] * (len(more) - 1) + [0]


START_UP = cases(__file__, "start_up")


@pytest.mark.parametrize("text", START_UP)
def test_start_up_texts_of_drivers(clients: Clients, text: str) -> None:
    for version in ("5.0", "7.4"):
        with clients.ct(clients.server.writer, version) as client:
            assert client.language(text).errors == []


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_sets_next_to_a_refused_one(clients: Clients, version: str) -> None:
    """tedious, src/connection.ts, getInitialSql: the options of a login are one batch."""
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(
            "set ansi_warnings off set textsize 100 set numeric_roundabort on set rowcount 1 select 1"
        )
        assert [error.number for error in answer.errors] == [195, 195]
        assert answer.rows == []
        answer = client.language("select @@textsize set rowcount 0")
        assert answer.rows == [["100"]]


def test_variables(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        answer = client.language("select @@spid, @@version as version, @@max_precision m, @@servername")
        assert answer.columns == ["", "version", "m", ""]
        (row,) = answer.rows
        assert row[2:] == ["38", "ringlog"]
        assert "ringlog" in str(row[1])
        assert client.language("select @@no_such").error.number == 137


def test_parameters_of_execute_with_pymssql(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("select %s as text, %d as number, %s as nothing", ("it's; drop", 5, None))
        assert cursor.fetchall() == [("it's; drop", 5, None)]
        cursor.execute("exec status %d", (3,))
        with pytest.raises(pymssql.Error) as refused:
            cursor.execute("select * from no_such")
        assert errors_of(refused.value)[:2] == (208, 16)
        assert rows_of(cursor, "select 1") == [(1,)]


def test_executesql(clients: Clients) -> None:
    """sp_executesql of a text, whose status comes after the end of its statements."""
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.callproc("sp_executesql", ("select 5 as five exec status 3",))
        assert cursor.fetchall() == [(5,)]
        assert rows_of(cursor, "select 1") == [(1,)]
        with pytest.raises(pymssql.Error):
            cursor.callproc("sp_executesql", ("select * from no_such",))
        assert rows_of(cursor, "select 2") == [(2,)]


def test_parameters_are_cut_and_padded_as_declared(server: RunningServer) -> None:
    """By sp_executesql, as ctds sends it: SqlVarBinary(value, size) and similar types contain the declared
    size.
    """
    login = server.reader
    with (
        ctds_of(server, login) as connection,
        connection.cursor() as cursor,
    ):
        raw = ctds.SqlVarBinary(b"1234567890", size=3)
        cursor.execute("select :0, :1", (raw, ctds.SqlNVarChar("häuser", size=2)))
        assert [tuple(row) for row in cursor.fetchall()] == [(b"123", "hä")]
        cursor.execute("exec sp_executesql N'select @b', N'@b binary(4)', 0x01")
        assert [tuple(row) for row in cursor.fetchall()] == [(b"\x01\0\0\0",)]
        with pytest.raises(ctds.DatabaseError, match="data type tinyint"):
            cursor.execute("exec sp_executesql N'select @t', N'@t tinyint', 256")


def test_the_longest_texts_of_print(clients: Clients) -> None:
    """ "PRINT": 8,000 characters of a text that is not Unicode, 4,000 of one that is; the rest is cut."""
    printed: list[bytes] = []
    with clients.pymssql(PLAIN) as connection:
        connection._conn.set_msghandler(
            lambda state, severity, server, procedure, line, text: printed.append(text)
        )
        connection.cursor().execute(
            "declare @s varchar(max) = replicate(cast('a' as varchar(max)), 9000)"
            " declare @n nvarchar(max) = replicate(cast(N'b' as nvarchar(max)), 9000) print @s print @n"
        )
    assert printed == [b"a" * 8000, b"b" * 4000]
