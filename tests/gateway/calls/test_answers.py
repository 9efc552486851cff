"""Rare requests of clients, and answers that clients wait for."""

import struct
from collections.abc import Iterator

import pymssql
import pytest

from authors import author_with_schema
from raw_client import RawClient, logged_in7
from raw_tds import BATCH7, IGNORE, LAST, LOGIN7, PRELOGIN, RPC7, batch7, login7, prelogin, rpc7
from servers import Login, RunningServer
from tds_clients import Admin, Clients, Param, rows_of

AUTHOR = Login("answering", "answering")


@pytest.fixture(scope="module")
def author(server: RunningServer) -> Iterator[Login]:
    """A login that may create procedures, in the database `answers`."""
    with author_with_schema(server, AUTHOR, "answers"):
        yield AUTHOR


def test_a_request_with_the_ignore_bit_is_answered(server: RunningServer) -> None:
    """By the IGNORE bit tedious cancels a request that it has not sent completely, and waits for a DONE."""
    with logged_in7(server, server.reader) as client:
        body = batch7("select 1")
        client.socket.sendall(struct.pack(">BBHHBB", BATCH7, IGNORE | LAST, len(body) + 8, 0, 1, 0) + body)
        answer = client.receive()
        assert answer[0] == 0xFD
        assert struct.unpack_from("<H", answer, 1) == (2,)
        assert struct.pack("<BBi", 0xD1, 4, 7) in client.batch("select 7")


def test_a_query_without_rows_ends_a_dynamic_statement(clients: Clients) -> None:
    with clients.ct(clients.server.reader, "5.0") as client:
        assert client.prepare("s", "select 1 as a where ? = 2").errors == []
        assert client.execute("s", [Param("int", "2")]).rows == [["1"]]
        none = client.execute("s", [Param("int", "1")])
        assert (none.rows, none.columns, none.errors) == ([], ["a"], [])
        assert client.execute("s", [Param("int", "2")]).rows == [["1"]]


def test_a_command_of_5_in_a_packet_of_7(server: RunningServer) -> None:
    """FreeTDS's tds_start_query sends language in packets of type 1 too, in the client's character set."""
    with RawClient(server.host, server.port) as client:
        client.log_in5(server.reader)
        client.send(BATCH7, b"select 'caf\xc3\xa9' as a")
        assert "café".encode() in client.receive()


def test_a_decimal_that_was_sent_as_null_comes_back(
    server: RunningServer, clients: Clients, author: Login
) -> None:
    """DB-Library of FreeTDS declares such an output without digits, and does not accept an answer without
    digits."""
    with clients.pymssql(author, database="answers") as connection, connection.cursor() as cursor:
        cursor.execute(
            "create procedure digits @d decimal(12, 3) output as select @d = 123456789.125 return 4"
        )
        cursor.execute("create procedure none @d decimal(12, 3) output as return 5")
    null = bytes([2]) + "@d".encode("utf-16-le") + bytes([1, 0x6A, 1, 0, 0, 0])
    with logged_in7(server, author) as client:
        for name, expected in (
            ("answers..digits", bytes([17, 38, 3, 17, 1]) + (123456789125).to_bytes(16, "little")),
            ("answers..none", bytes([17, 38, 0, 0])),
        ):
            client.send(RPC7, rpc7(name) + null)
            assert b"\x6a" + expected in client.receive()


def test_a_value_that_a_client_sends_for_a_text_is_text_as_in_t_sql(
    server: RunningServer, clients: Clients, author: Login
) -> None:
    """ "CAST and CONVERT": a float has 6 digits, money two decimals; an integer that does not fit is *."""
    with clients.pymssql(author, database="answers") as connection, connection.cursor() as cursor:
        cursor.execute("create procedure shows @t varchar(30) as print '<' + isnull(@t, 'none') + '>'")
        cursor.execute(
            "create procedure shows_here @t varchar(30) as exec ('') print '<' + isnull(@t, 'none') + '>'"
        )
        cursor.execute("create procedure shows_2 @t nchar(2) as print '<' + @t + '>'")
        cursor.execute("create procedure shows_3 @t varchar(3) as print '<' + @t + '>'")
    values = [
        (b"\x6d\x08\x00", "none"),
        (b"\x6d\x08\x08" + struct.pack("<d", 1234567.0), "1.23457e+006"),
        (b"\x6d\x04\x04" + struct.pack("<f", 0.1), "0.1"),
        (b"\x6f\x08\x08" + struct.pack("<iI", 45416, 25689 * 300), "May  6 2024  7:08AM"),
        (b"\x6e\x08\x08" + struct.pack("<iI", 0, 123450), "12.35"),
        (b"\x28\x03" + (738_645).to_bytes(3, "little"), "2023-05-06"),
        (b"\x26\x04\x04" + struct.pack("<i", 12345), "12345"),
    ]
    with logged_in7(server, author) as client:

        def called(name: str, value: bytes) -> bytes:
            return client.rpc(f"answers..{name}", [("@t", value)])

        # a known call is bound in another way
        for _ in range(3):
            for value, text in values:
                for name in ("shows", "shows_here"):
                    assert f"<{text}>".encode("utf-16-le") in called(name, value), (name, text)
        assert "<*>".encode("utf-16-le") in called("shows_3", b"\x26\x04\x04" + struct.pack("<i", 12345))
        assert struct.pack("<i", 8115) in called("shows_2", b"\x26\x04\x04" + struct.pack("<i", 12345))
        # its 36 characters do not fit
        for name in ("shows", "shows_here"):
            assert struct.pack("<i", 8170) in called(name, b"\x24\x10\x10" + bytes(16)), name


def test_the_previous_database_is_sent(server: RunningServer) -> None:
    """jTDS refuses a change of database from one other than its present one (TdsCore.processEnvChange)."""

    def text(name: str) -> bytes:
        return bytes([len(name)]) + name.encode("utf-16-le")

    with logged_in7(server, server.reader) as client:
        assert b"\x01" + text("log") + text("online") in client.batch("use log")


def test_rows_lost_by_a_rollback_are_reported(clients: Clients, author: Login) -> None:
    with clients.pymssql(author, database="answers") as connection, connection.cursor() as cursor:
        cursor.execute("create procedure fails as select 1 raiserror('x', 16, 1)")
        body = "begin tran begin try exec fails commit end try begin catch rollback select 2 end catch"
        cursor.execute(f"create procedure catches as {body}")
        for text in ("exec catches", "begin try exec catches end try begin catch select 'never' end catch"):
            with pytest.raises(pymssql.Error, match="has selected rows, and a rollback has taken them"):
                cursor.execute(text)
            assert rows_of(cursor, "select 3") == [(3,)]
        cursor.execute(body)
        assert cursor.fetchall() == [(1,)]
        assert cursor.nextset()
        assert cursor.fetchall() == [(2,)]


def test_no_output_of_a_text_at_7(server: RunningServer) -> None:
    """mssql-jdbc ends the connection at a RETURNVALUE in the answer to a text."""
    with logged_in7(server, server.reader) as client:
        call = "declare @a int exec sp_executesql N'set @p = 5 {}', N'@p int output', @a output select @a"
        for failing in ("", "select 1 / 0"):
            answer = client.batch(call.format(failing))
            assert b"\xac\x00\x00" not in answer
            assert b"\xac\x02\x00" not in answer


def ends(answer: bytes) -> list[tuple[int, int, int]]:
    """Status, command and count of the DONE tokens of an answer without other tokens."""
    assert len(answer) % 13 == 0
    assert set(answer[::13]) == {0xFD}
    return [struct.unpack_from("<HHQ", answer, at + 1) for at in range(0, len(answer), 13)]


def test_the_end_of_every_statement_has_its_command(server: RunningServer) -> None:
    """mssql-jdbc's StreamDone has the numbers."""
    with logged_in7(server, server.reader) as client:
        client.send(
            BATCH7,
            batch7(
                "create table #e (a int) insert #e values (1), (2) update #e set a = 3 where a = 1 "
                "delete #e select 5 as b into #f set nocount off declare @a int set @a = 2 select @a = 1"
            ),
        )
        more, counted = 1, 0x10
        assert ends(client.receive()) == [
            (more, 0xC6, 0),
            (more | counted, 0xC3, 2),
            (more | counted, 0xC5, 1),
            (more | counted, 0xC4, 2),
            (more | counted, 0xC2, 1),
            (more, 0, 0),
            # an assignment is a SELECT of one row (microsoft/mssql-rs, #372, from SQL Server 2022)
            (more | counted, 0xC1, 1),
            (counted, 0xC1, 1),
        ]
        assert ends(client.batch("declare @a int = 1 select @a = a from (values (1), (2)) t (a)")) == [
            (more | counted, 0xC1, 1),
            (counted, 0xC1, 2),
        ]
        assert client.batch("select 1")[-13:] == struct.pack("<BHHQ", 0xFD, counted, 0xC1, 1)


def test_a_statement_whose_error_is_caught_ends_as_without_it(
    clients: Clients, server: RunningServer, author: Login
) -> None:
    """`begin try … select 4/0 …` gives a column and "(0 row(s) affected)" (SQL Server Programmability Blog,
    2006-03-30; microsoft/mssql-jdbc, #659: an empty result set where an insert with OUTPUT fails in TRY).
    """
    more, counted = 1, 0x10
    caught = "begin try {} end try begin catch update #c set a = 5 end catch"
    with logged_in7(
        server,
        author,
        "use answers",
        "create table #c (a int primary key) insert #c values (5)",
        "create table kept (a int primary key) insert kept values (5)",
    ) as client:
        for statement, command in (
            ("insert #c values (5)", 0xC3),
            ("update #c set a = a / 0", 0xC5),
            ("delete #c where a / 0 = 1", 0xC4),
        ):
            assert ends(client.batch(caught.format(statement))) == [
                (more | counted, command, 0),
                (counted, 0xC5, 1),
            ], statement
        # a missing name ends the text before anything has run
        assert ends(client.batch(caught.format("exec ('insert no_such_table values (1)')"))) == [
            (counted, 0xC5, 1)
        ]
        for procedure in (
            "create procedure compiled as "
            "begin try insert kept values (5) end try begin catch return 1 end catch",
            "create procedure run as declare @i int set @i = @@spid "
            "begin try insert kept values (5) end try begin catch return 1 end catch",
        ):
            client.batch(procedure)
        for name in ("compiled", "run"):
            answer = client.rpc(f"answers..{name}")
            last = struct.pack("<BHHQ", 0xFF, more | counted, 0xC3, 0)
            # the return status follows
            assert last + b"\x79" in answer
    rows = "(values (3), (2), (0)) t (a)"
    with clients.pymssql(author) as connection, connection.cursor() as cursor:
        for query, expected in (("select 4 / 0 as q", []), (f"select 6 / a as q from {rows}", [(2,), (3,)])):
            cursor.execute(f"begin try {query} end try begin catch select error_number() end catch")
            assert [column[0] for column in cursor.description or ()] == ["q"]
            assert cursor.fetchall() == expected
            assert cursor.nextset()
            assert cursor.fetchall() == [(8134,)]


def test_rows_of_a_procedure_with_nocount_are_not_counted(server: RunningServer, author: Login) -> None:
    """SET NOCOUNT: "the count isn't returned"; the end of the rows is (tedious, "should call procedure with
    parameters"). Without it the row count is sent (MS-TDS 2.2.7.7, DONE_COUNT).
    """
    with logged_in7(
        server,
        author,
        "use answers",
        "create procedure counts_rows as select 1 as a",
        "create procedure hides_rows as begin set nocount on select 1 as a return 0 end",
    ) as client:
        for name, expected in (("counts_rows", (0x11, 1)), ("hides_rows", (0x01, 0))):
            answer = client.rpc(f"answers..{name}")
            at = answer.index(0xFF, answer.index(0xD1))
            status, command, rows = struct.unpack_from("<HHQ", answer, at + 1)
            assert ((status, rows), command) == (expected, 0xC1), name
        # tedious, insertion-tests.ts, "should exec proc as sql"
        assert struct.pack("<BHHQ", 0xFF, 0x01, 0xC1, 0) in client.batch("exec sp_help int")


def test_values_that_a_procedure_selects_are_counted(server: RunningServer, author: Login) -> None:
    """ODBC drivers report SQL_NO_DATA for a call without any row count."""
    with logged_in7(
        server,
        author,
        "use answers",
        "create procedure selects as declare @a int select @a = 5",
        "create procedure is_quiet as set nocount on declare @a int select @a = 5",
    ) as client:
        for name, expected in (("selects", [struct.pack("<BHHQ", 0xFF, 0x11, 0xC1, 1)]), ("is_quiet", [])):
            answer = client.rpc(f"answers..{name}")
            ends_of_statements = [answer[:13]] if answer[0] == 0xFF else []
            assert ends_of_statements == expected
            assert answer[13 * len(expected)] == 0x79


def test_ends_of_statements_without_rows_in_a_procedure(server: RunningServer, author: Login) -> None:
    """FreeTDS, src/odbc/unittests/raiserror.c: a message is a result of its own, before the rows that follow;
    MS-TDS 2.2.7.7: status 2, DONE_ERROR, after an error. Under NOCOUNT there is none ("SET NOCOUNT")."""
    messages = "print 'a' raiserror('b', 5, 1) raiserror('c', 16, 1)"
    ends = [struct.pack("<BHHQ", 0xFF, 1 | error, 0, 0) for error in (0, 2)]
    with logged_in7(
        server,
        author,
        "use answers",
        f"create procedure tells as {messages}",
        f"create procedure tells_less as set nocount on {messages}",
    ) as client:

        def counts_of(name: str) -> list[int]:
            answer = client.rpc(f"answers..{name}")
            return [answer.count(end) for end in ends]

        assert counts_of("tells") == [2, 1]
        assert counts_of("tells_less") == [0, 0]
        client.batch("set nocount on")
        assert counts_of("tells") == [0, 1]


def test_statements_of_a_trigger_are_counted(server: RunningServer, author: Login) -> None:
    """SQL Server sends the row counts of a trigger's statements before that of the firing statement
    (go-mssqldb, #204), with the command of each, by which mssql-jdbc passes over its inserts (its #2740); SET
    NOCOUNT ON in the trigger stops them."""
    more, counted = 1, 0x10
    with logged_in7(
        server,
        author,
        "use answers",
        "create table fires (a int)",
        "create table fired (a int)",
        "create trigger counts on fires after insert as declare @n int "
        "insert fired select a from inserted update fired set a = a + 1 select @n = 1",
        "create procedure fires_twice as insert fires values (1) insert fires values (2)",
    ) as client:
        in_trigger = [(0xFF, 0xC3, 2), (0xFF, 0xC5, 2), (0xFF, 0xC1, 1)]
        answer = client.batch("insert fires values (1), (2)")
        found = [struct.unpack_from("<BHHQ", answer, at) for at in range(0, len(answer), 13)]
        assert found == [
            *((scope, more | counted, command, rows) for scope, command, rows in in_trigger),
            (0xFD, counted, 0xC3, 2),
        ]
        assert struct.pack("<BBi", 0xD1, 4, 1) in client.batch(
            "delete fired insert fires values (1) select @@rowcount as n"
        )
        answer = client.rpc("answers..fires_twice")
        found = [struct.unpack_from("<BHHQ", answer, at) for at in range(0, 8 * 13, 13)]
        assert [entry[3] for entry in found] == [1, 2, 1, 1, 1, 3, 1, 1]
        client.batch(
            "alter trigger counts on fires after insert as set nocount on insert fired select a from inserted"
        )
        assert ends(client.batch("insert fires values (1), (2)")) == [(counted, 0xC3, 2)]


def messages(answer: bytes) -> list[tuple[int, str, int]]:
    """Number, procedure and line of each message of an answer without rows (MS-TDS 2.2.7.10, ERROR)."""
    found, at = [], 0
    while at < len(answer):
        token = answer[at]
        if token in (0xAA, 0xAB):
            (length, number) = struct.unpack_from("<Hi", answer, at + 1)
            (text,) = struct.unpack_from("<H", answer, at + 9)
            server = at + 11 + 2 * text
            procedure = server + 1 + 2 * answer[server]
            end = procedure + 1 + 2 * answer[procedure]
            (line,) = struct.unpack_from("<i", answer, end)
            found.append((number, answer[procedure + 1 : end].decode("utf-16-le"), line))
            at += 3 + length
        else:
            at += {0xFD: 13, 0xFE: 13, 0xFF: 13, 0x79: 5}[token]
    return found


def test_messages_name_their_procedure_and_line(server: RunningServer, author: Login) -> None:
    """ERROR_LINE: "the line number within the stored procedure" (SQL Server documentation)."""
    texts = (
        "create procedure says @divisor int as\nbegin\n  declare @i int print 'line 3'\n"
        "  print 'lines 4\nand 5'\n  if @divisor = 0\n    raiserror('line 7', 10, 1)\n"
        "  while @divisor < 1\n  begin\n    set @divisor = 1\n    select @i =\n"
        "      1 / (@divisor - 1)\n  end\nend",
        "create procedure calls as\n\nexec says 0",
        "create procedure keeps @a int as\ncreate table #k (a int primary key)\ninsert #k values (1)\n\n"
        "insert #k\nvalues (@a)",
    )
    inner = [(0, "says", 3), (0, "says", 4), (50000, "says", 7), (8134, "says", 11)]
    with logged_in7(server, author, "use answers", *texts) as client:
        for text, expected in (
            ("exec says 0", inner),
            ("print 'first'\nexec calls", [(0, "", 1), *inner]),
            ("exec keeps 1", [(2627, "keeps", 5), (3621, "keeps", 5)]),
            ("\n\nselect convert(int, 'x') as a into #a", [(245, "", 3)]),
        ):
            answer = client.batch(text)
            assert messages(answer) == expected, text


def test_columns_are_described_as_declared(clients: Clients, server: RunningServer) -> None:
    declared = "t tinyint null, m money null, s smallmoney null, d datetime null, e smalldatetime null"
    text = f"create table #t ({declared}) select t, m, s, d, e from #t drop table #t"
    with logged_in7(server, server.reader) as client:
        answer = client.batch(text)
        for name, wire in (("t", "2601"), ("m", "6e08"), ("s", "6e04"), ("d", "6f08"), ("e", "6f04")):
            assert bytes.fromhex(wire) + bytes([1]) + name.encode("utf-16-le") in answer
    with clients.ct(clients.server.reader, "5.0") as client:
        # CS_TINYINT, CS_MONEY, CS_MONEY4, CS_DATETIME, CS_DATETIME4
        assert client.language(text).types == [6, 14, 15, 12, 13]


def test_quotes_and_nulls_of_clients_other_than_odbc(server: RunningServer) -> None:
    """MS-TDS 2.2.6.4, fODBC: without it QUOTED_IDENTIFIER and ANSI_NULLS are off, as for DB-Library."""
    for odbc, expected in ((True, b"\xaa"), (False, b"\xd1\x01\x00x")):
        with RawClient(server.host, server.port) as client:
            client.packet_size = 4096
            client.send(PRELOGIN, prelogin())
            client.receive()
            record = bytearray(login7(server.reader))
            record[25] = 2 if odbc else 0
            client.send(LOGIN7, bytes(record))
            client.receive()
            assert expected in client.batch('select "x" as a')
            client.batch("set nocount on set xact_abort on")
            client.send(BATCH7, batch7("select @@options as o"))
            options = 5208 + 512 + 16384 + (32 + 256) * odbc
            assert struct.pack("<BBi", 0xD1, 4, options) in client.receive()


def test_an_ordinary_login_sees_its_own_session(clients: Clients, admin: Admin) -> None:
    admin.execute(
        "create role seeing nologin; create role seer login password 'seer' in role seeing, daq_reader;"
        "grant daq_reader to seeing; alter role seer set role = seeing"
    )
    try:
        with clients.pymssql(Login("seer", "seer")) as connection, connection.cursor() as cursor:
            for text in (
                "select loginame from sysprocesses where spid = @@spid",
                "select login_name from sys.dm_exec_sessions where session_id = @@spid",
            ):
                cursor.execute(text)
                assert cursor.fetchall() == [("seer",)]
            # tedious, test/integration/connection-test.ts and transactions-test.ts
            cursor.execute(
                "set dateformat dmy set datefirst 3 set transaction isolation level repeatable read "
                "select transaction_isolation_level, date_format, date_first from sys.dm_exec_sessions "
                "where session_id = @@spid"
            )
            assert cursor.fetchall() == [(3, "dmy", 3)]
            cursor.execute("exec sp_who")
            assert "seer" in [row[3] for row in cursor.fetchall()]
    finally:
        admin.execute("drop role seer, seeing")
