"""T-SQL's transactions: by text, by the requests of drivers, and left open."""

import struct
from typing import Any

import pymssql
import pytest
from talks import hold, talks

import raw_tds
from raw_client import RawClient, logged_in7
from raw_tds import BATCH7, BIG, CHAINED, DATEFORMAT, LITTLE, Order, batch7, option
from servers import Login, RunningServer
from tds_clients import Admin, Clients, rows_of

pytestmark = pytest.mark.usefixtures("functions")


@pytest.fixture(autouse=True)
def empty_journal(admin: Admin) -> None:
    admin.execute("truncate gateway_test.journal")


def entries(admin: Admin) -> list[object]:
    return [entry for (entry,) in admin.execute("select entry from gateway_test.journal order by id")]


@talks(__file__)
def test_by_text(clients: Clients, admin: Admin, version: str, talk: dict[str, Any]) -> None:
    hold(talk, version, clients, admin)


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
    with logged_in7(server, server.writer) as client:

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
        with logged_in7(server, server.writer) as client:
            for kind, request in ((TRANSACTION, managed(COMMIT)), (BATCH7, batch7("commit"))):
                assert (
                    environment(client.batch("begin tran insert into gateway_test..child values (-1)"))
                    == BEGUN
                )
                client.send(kind, request)
                reply = client.receive()
                assert environment(reply) == ROLLED_BACK
                (length,) = struct.unpack_from("<H", reply, 1)
                assert struct.unpack_from("<BHi", reply, 3 + length)[::2] == (0xAA, 547)
    finally:
        admin.execute("drop table gateway_test.child")


def test_a_connection_that_is_reset_begins_anew(server: RunningServer, admin: Admin) -> None:
    """As requested by connection pools of 7.x drivers with the first request of the next user."""
    with logged_in7(server, server.writer) as client:
        client.batch("use log begin tran exec enter 'undone' set implicit_transactions on")
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
