"""T-SQL's transactions: by text, by the requests of drivers, and left open."""

import struct

import pymssql
import pytest

import raw_tds
from raw_tds import BATCH7, BIG, CHAINED, DATEFORMAT, LITTLE, Order, RawClient, batch7, option
from servers import Login, RunningServer
from tds_clients import SEVENS, Admin, Clients, Param, rows_of, violated_check

pytestmark = pytest.mark.usefixtures("functions")
VERSIONS = pytest.mark.parametrize("version", ["5.0", "7.1", "7.4"])
# by group commit if there is no transaction, and on the caller's own connection
ENTER = pytest.mark.parametrize("enter", ["enter", "enter_myself"])


@pytest.fixture(autouse=True)
def empty_journal(admin: Admin) -> None:
    admin.execute("truncate gateway_test.journal")


def entries(admin: Admin) -> list[object]:
    return [entry for (entry,) in admin.execute("select entry from gateway_test.journal order by id")]


@VERSIONS
@ENTER
def test_rollback_undoes_and_commit_keeps(clients: Clients, admin: Admin, version: str, enter: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.language("begin tran").errors == []
        assert client.call(enter, [Param("char", "undone")]).statuses == [0]
        assert client.language(f"exec {enter} 'undone too'").statuses == [0]
        assert entries(admin) == [], "nobody else sees it yet"
        assert client.language("rollback tran select @@trancount").rows == [["0"]]
        assert entries(admin) == []
        assert client.language(f"begin transaction exec {enter} 'a' exec {enter} 'b' commit").errors == []
        assert entries(admin) == ["a", "b"]


@VERSIONS
def test_trancount_and_levels(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        answer = client.language(
            "select @@trancount begin tran select @@trancount begin tran select @@trancount "
            "exec enter 'a' commit select @@trancount"
        )
        assert answer.rows == [["0"], ["1"], ["2"], ["1"]]
        assert entries(admin) == []
        assert client.language("commit select @@trancount").rows == [["0"]]
        assert entries(admin) == ["a"]
        assert client.language("begin tran begin tran exec enter 'b' rollback select @@trancount").rows == [
            ["0"]
        ]
        assert entries(admin) == ["a"]


@VERSIONS
@ENTER
def test_a_statement_that_fails_keeps_the_transaction(
    clients: Clients, admin: Admin, version: str, enter: str
) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.language(f"begin tran exec {enter} 'before'").statuses == [0]
        assert client.call(enter, [Param("char", "bad")]).error.number == violated_check(version)
        assert client.call("no_such").error.number == 2812
        assert client.language("select * from no_such").error.number == 208
        assert client.language("select 1 +").error.number == 102
        duplicate = 2601 if version == "5.0" else 2627
        assert client.language(f"exec {enter} 'before'").error.number == duplicate
        assert client.language(f"exec {enter} 'after' select @@trancount").rows == [["1"]]
        assert client.language("commit").errors == []
    assert entries(admin) == ["before", "after"]


@VERSIONS
def test_savepoints(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        # SQL Server, "SAVE TRANSACTION": 32 characters at most
        long = "s" * (100 if version == "5.0" else 31)
        long_names = [long + "1", long + "2"]
        answer = client.language(
            "begin tran exec enter 'a' save tran one exec enter 'b' save tran two exec enter 'c' "
            "rollback tran one exec enter 'd'"
        )
        assert answer.errors == []
        gone = client.language("rollback tran two")
        assert gone.error[:2] == (6401, 16)
        assert "Cannot roll back two" in gone.error.text
        assert client.language("exec enter 'e' rollback tran one exec enter 'f' select @@trancount").rows == [
            ["1"]
        ]
        for name in long_names:
            assert client.language(f"save tran {name} exec enter '{name[-1]}'").errors == []
        assert client.language(f"rollback tran {long_names[0]}").errors == []
        assert client.language("commit").errors == []
    assert entries(admin) == ["a", "f"]


@VERSIONS
def test_a_transaction_has_a_name(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.language("begin tran whole exec enter 'a' rollback tran whole").errors == []
        assert client.language("select @@trancount").rows == [["0"]]
        assert client.language("begin tran whole exec enter 'b' commit tran whole").errors == []
        assert client.language("begin tran whole rollback tran other").error.number == 6401
    assert entries(admin) == ["b"]


def test_ends_without_a_beginning(clients: Clients) -> None:
    with clients.ct(clients.server.writer, "7.4") as client:
        assert client.language("commit").error[:2] == (3902, 16)
        assert client.language("rollback").error[:2] == (3903, 16)
        assert client.language("save tran a").error[:2] == (628, 16)
        assert client.language("if @@trancount > 0 commit").errors == []
    with clients.ct(clients.server.writer, "5.0") as client:
        assert client.language("commit rollback").errors == [], "Sybase says nothing of it"


@VERSIONS
def test_a_transaction_left_open_is_rolled_back(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.writer, version) as client:
        assert client.language("begin tran exec enter 'lost'").statuses == [0]
    with clients.ct(clients.server.writer, version) as client:
        # the row lock of the first would make this one wait
        assert client.language("exec enter 'lost'").statuses == [0]
    assert entries(admin) == ["lost"]


@VERSIONS
def test_the_database_used_in_a_transaction_outlives_its_rollback(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language("begin tran select 1 use log select current_schema() rollback")
        assert answer.rows == [["1"], ["log"]]
        assert client.language("select current_schema()").rows == [["log"]]
        answer = client.language(
            "begin tran select 1 save tran s use online rollback tran s select current_schema() commit"
        )
        assert answer.rows == [["1"], ["online"]]


def test_a_commit_that_fails_is_reported(clients: Clients, admin: Admin) -> None:
    """A constraint that is checked at the end of the transaction."""
    admin.execute(
        "create table gateway_test.child (parent int references gateway_test.journal (id) "
        "deferrable initially deferred); grant insert on gateway_test.child to daq_writer; "
        "create function gateway_test.orphan() returns int language sql "
        "as 'insert into gateway_test.child values (-1) returning 0'; notify ringlog_catalogue"
    )
    for version in ("5.0", "7.4"):
        with clients.ct(clients.server.writer, version) as client:
            assert client.language("begin tran exec enter 'with it' exec orphan").statuses == [0, 0]
            assert client.language("commit").error[:2] == (547, 16)
            assert client.language("select @@trancount").rows == [["0"]]
            assert client.call("orphan").error.number == (546 if version == "5.0" else 547)
    admin.execute("drop function gateway_test.orphan; drop table gateway_test.child")
    assert entries(admin) == []


def test_the_end_of_postgresqls_connection_ends_the_transaction(clients: Clients, admin: Admin) -> None:
    with clients.ct(clients.server.writer, "7.4") as client:
        answer = client.language("begin tran exec enter_myself 'lost' select pg_backend_pid()")
        assert admin.execute(f"select pg_terminate_backend({answer.rows[0][0]})").fetchone() == (True,)
        lost = client.language("exec enter_myself 'never'")
        assert len(lost.errors) == 1
        assert client.language("select @@trancount").rows == [["0"]]
        assert client.language("commit").error.number == 3902
        assert client.language("exec enter_myself 'later'").statuses == [0], "a new connection is made"
    assert entries(admin) == ["later"]


def test_pymssql_with_autocommit_off(clients: Clients, admin: Admin) -> None:
    with clients.pymssql(clients.server.writer, autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.callproc("enter", ("a",))
        connection.rollback()
        assert entries(admin) == []
        cursor.callproc("enter", ("b",))
        with pytest.raises(pymssql.Error):
            cursor.callproc("enter", ("bad",))
        cursor.callproc("enter", ("c",))
        assert entries(admin) == []
        connection.commit()
        assert entries(admin) == ["b", "c"]
        assert rows_of(cursor, "select @@trancount") == [(1,)]
        cursor.callproc("enter", ("never",))
    assert entries(admin) == ["b", "c"]


def test_a_driver_that_only_begins_holds_nothing(clients: Clients, admin: Admin, own_login: Login) -> None:
    """pymssql begins a transaction at once; PostgreSQL gets it with the first statement."""
    with clients.pymssql(own_login, autocommit=False) as connection:
        connection.commit()
        idle = "select count(*) from pg_stat_activity where usename = %s and state like 'idle in tr%%'"
        assert admin.execute(idle, [own_login.user]).fetchone() == (0,)


@VERSIONS
def test_implicit_transactions(clients: Clients, admin: Admin, version: str) -> None:
    setting = "chained" if version == "5.0" else "implicit_transactions"
    with clients.ct(clients.server.writer, version) as client:
        assert client.language(f"set {setting} on").errors == []
        assert client.call("enter", [Param("char", "a")]).statuses == [0]
        assert client.language("select @@trancount").rows == [["1"]]
        assert entries(admin) == []
        assert client.language("commit").errors == []
        assert entries(admin) == ["a"]
        assert client.language("exec enter 'b' rollback select @@trancount").rows == [["0"]]
        assert client.language("commit").errors == []
        assert client.language(f"set {setting} off exec enter 'c'").errors == []
    assert entries(admin) == ["a", "c"]


@pytest.mark.parametrize("order", [LITTLE, BIG])
def test_chained_by_option_token(server: RunningServer, admin: Admin, order: Order) -> None:
    """As set by ct_options and DBD::Sybase's AutoCommit."""
    puts = [raw_tds.dbrpc("enter", [raw_tds.Param(raw_tds.VARCHAR, entry)], order) for entry in "ab"]
    with RawClient(server.host, server.port, order=order) as client:
        assert client.log_in5(server.writer).login == 5
        assert client.ask(option(1, CHAINED, b"\1", order)).errors == []
        assert client.ask(puts[0]).statuses == [0]
        assert entries(admin) == []
        assert client.language("commit").errors == []
        assert entries(admin) == ["a"]
        # the default is off
        assert client.ask(option(2, CHAINED, b"", order) + puts[1]).errors == []
        assert entries(admin) == ["a", "b"]


def test_an_unsupported_option_is_refused(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(server.writer).login == 5
        reply = client.ask(option(1, DATEFORMAT, b"\7") + raw_tds.language("select 1 as one"))
        assert [error.number for error in reply.errors] == [195]


# --- requests of drivers, byte by byte ---

TRANSACTION, RESET = 0x0E, 0x08
BEGIN, COMMIT, ROLLBACK, SAVE = 5, 7, 8, 9
BEGUN, COMMITTED, ROLLED_BACK = 8, 9, 10


def managed(request: int, name: str = "", begin_again: bool | None = None) -> bytes:
    """A transaction manager request (MS-TDS 2.2.6.9)."""
    body = raw_tds.HEADERS + struct.pack("<H", request)
    if request == BEGIN:
        body += b"\2"
    body += bytes([2 * len(name)]) + name.encode("utf-16-le")
    return (
        body if begin_again is None else body + bytes([int(begin_again)]) + (b"\2\0" if begin_again else b"")
    )


def environment(reply: bytes) -> int | None:
    """The kind of the ENVCHANGE that a reply begins with."""
    return reply[3] if reply[0] == 0xE3 else None


def test_transaction_requests(server: RunningServer, admin: Admin) -> None:
    with RawClient(server.host, server.port) as client:
        client.log_in7(server.writer)

        def ask(kind: int, body: bytes) -> bytes:
            client.send(kind, body)
            reply = client.receive()
            assert reply[:1] != b"\xaa", reply
            return reply

        def enter(entry: str) -> None:
            assert ask(BATCH7, batch7(f"exec enter '{entry}'"))[0] == 0x79

        assert environment(ask(TRANSACTION, managed(BEGIN))) == BEGUN
        enter("undone")
        assert environment(ask(TRANSACTION, managed(ROLLBACK, begin_again=True))) == ROLLED_BACK
        enter("a")
        assert environment(ask(TRANSACTION, managed(SAVE, "here"))) is None
        enter("undone")
        assert environment(ask(TRANSACTION, managed(ROLLBACK, "here"))) is None
        enter("b")
        assert entries(admin) == []
        assert environment(ask(TRANSACTION, managed(COMMIT, begin_again=False))) == COMMITTED
        assert entries(admin) == ["a", "b"]
        client.send(TRANSACTION, managed(COMMIT))
        assert struct.unpack("<i", client.receive()[3:7]) == (3902,)


def test_a_failing_commit_is_not_reported_as_committed(server: RunningServer, admin: Admin) -> None:
    """A constraint that is checked at the end of the transaction."""
    admin.execute(
        "create table gateway_test.child (parent int references gateway_test.journal (id) "
        "deferrable initially deferred); grant insert on gateway_test.child to daq_writer"
    )
    try:
        with RawClient(server.host, server.port) as client:
            client.log_in7(server.writer)
            for kind, request in ((TRANSACTION, managed(COMMIT)), (BATCH7, batch7("commit"))):
                client.send(BATCH7, batch7("begin tran insert into gateway_test..child values (-1)"))
                assert environment(client.receive()) == BEGUN
                client.send(kind, request)
                reply = client.receive()
                assert environment(reply) == ROLLED_BACK
                (length,) = struct.unpack_from("<H", reply, 1)
                assert struct.unpack_from("<BHi", reply, 3 + length)[::2] == (0xAA, 547)
    finally:
        admin.execute("drop table gateway_test.child")


def test_a_connection_that_is_reset_begins_anew(server: RunningServer, admin: Admin) -> None:
    """As requested by connection pools of 7.x drivers with the first request of the next user."""
    with RawClient(server.host, server.port) as client:
        client.log_in7(server.writer)
        client.send(BATCH7, batch7("use log begin tran exec enter 'undone' set implicit_transactions on"))
        client.receive()
        packet = bytearray(client.packets(BATCH7, batch7("exec enter 'kept' select current_schema()")))
        packet[1] |= RESET
        client.socket.sendall(packet)
        reply = client.receive()
        # the transaction is rolled back (10), then the reset is acknowledged (18): MS-TDS 2.2.7.9
        assert environment(reply) == 10
        (length,) = struct.unpack_from("<H", reply, 1)
        assert environment(reply[3 + length :]) == 18
        assert "online".encode("utf-16-le") in reply
    assert entries(admin) == ["kept"]


SAVEPOINT_OF_JTDS = (
    "if @@trancount = 0 begin set implicit_transactions off begin tran set implicit_transactions on end "
    "save tran x"
)
"""ConnectionJDBC3.setSavepoint"""


@pytest.mark.parametrize("version", SEVENS)
def test_only_statements_on_tables_begin_a_transaction(clients: Clients, version: str) -> None:
    """SQL Server: SET IMPLICIT_TRANSACTIONS."""

    def count() -> list[list[str | None]]:
        return client.language("select @@trancount").rows

    with clients.ct(clients.server.writer, version) as client:
        client.language("set implicit_transactions on")
        client.language(
            "declare @a int set @a = 1 + 1 if @a > 1 print 'x' select 1, getdate() set nocount off"
        )
        assert count() == [["0"]]
        client.language(SAVEPOINT_OF_JTDS)
        assert count() == [["1"]]
        client.language("commit")
        assert count() == [["0"]]
        client.language("begin tran")
        assert count() == [["2"]]
        client.language("rollback")
        client.language("select count(*) from sr_vac")
        assert count() == [["1"]]


@VERSIONS
def test_an_idle_reader_locks_nothing(clients: Clients, admin: Admin, version: str) -> None:
    admin.execute(
        "create table public.read_by_many (a int); grant select on public.read_by_many to daq_reader"
    )
    try:
        with clients.ct(clients.server.reader, version) as client:
            client.language("set chained on" if version == "5.0" else "set implicit_transactions on")
            assert client.language("select a from read_by_many select @@trancount").rows == [["1"]]
            admin.execute("set lock_timeout = '100s'; truncate public.read_by_many")
            admin.execute("alter table public.read_by_many add b int")
            assert client.language("select count(b) from read_by_many select @@trancount").rows == [
                ["0"],
                ["1"],
            ]
    finally:
        admin.execute("drop table public.read_by_many; reset lock_timeout")
