"""The life of a session: its connections to PostgreSQL, resets, and limits of logins."""

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import psutil
import pymssql
import pyodbc
import pytest

import raw_tds
from raw_client import RawClient
from ringlog.server.processes.descriptors import raise_file_limit
from servers import Login, RunningServer
from tds_clients import VERSIONS, Admin, Clients, Param, rows_of
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("functions")

PLAIN = Login("plain", "plain")
RESET, RESET_KEEPING_TRANSACTION = 0x08, 0x10


def row_count(reply: bytes) -> int:
    """The number of rows in a reply to a query of one integer, from its final DONE."""
    token, status, count = struct.unpack("<BH2xQ", reply[-13:])
    assert token == 0xFD, reply
    return int(count) if status & 0x10 else 0


class Client7(RawClient):
    """A raw client of TDS 7.4."""

    def batch(self, text: str, *, status: int = 0) -> bytes:
        request = bytearray(self.packets(raw_tds.BATCH7, raw_tds.batch7(text)))
        request[1] |= status
        self.socket.sendall(request)
        return self.receive()


@contextmanager
def session(server: RunningServer, login: Login = PLAIN) -> Iterator[Client7]:
    with Client7(server.host, server.port) as client:
        assert b"\xad" in client.log_in7(login)
        yield client


def number(reply: bytes) -> int:
    """The one integer of a reply."""
    assert row_count(reply) == 1, reply
    assert reply[-19:-17] == b"\xd1\x04", reply
    return int.from_bytes(reply[-17:-13], "little")


PID = "select pg_backend_pid()"


# --- connections to PostgreSQL ---


@pytest.fixture(scope="module")
def most_connections(admin: Admin) -> int:
    row = admin.execute("show max_connections").fetchone()
    assert row is not None
    return int(str(row[0]))


@pytest.mark.long
def test_more_sessions_than_postgresql_has_connections(server: RunningServer, most_connections: int) -> None:
    """A login needs a connection for a short time, a statement while it runs, an idle session little
    memory.
    """
    process = psutil.Process(server.process.pid)
    with ExitStack() as open_sessions:
        for _ in range(50):
            open_sessions.enter_context(session(server))
        before = process.memory_info().rss
        count = most_connections + 100
        clients = [open_sessions.enter_context(session(server)) for _ in range(count)]
        assert (process.memory_info().rss - before) / count < 64 * 1024
        for client in clients:
            assert number(client.batch("select 7")) == 7


def test_an_idle_session_gives_its_connection_to_others(
    server: RunningServer, admin: Admin, most_connections: int
) -> None:
    """A session with a temporary table keeps its connection; others get one when they need it."""

    def is_connected(pid: int) -> bool:
        return admin.execute("select from pg_stat_activity where pid = %s", [pid]).fetchone() is not None

    with session(server) as kept, session(server) as given, ExitStack() as others:
        kept.batch("create table #kept (a int) insert #kept values (5)")
        kept_pid, given_pid = number(kept.batch(PID)), number(given.batch(PID))
        for _ in range(most_connections):
            answer = others.enter_context(session(server)).batch("begin transaction select 1")
            if not is_connected(given_pid):
                break
            # its process may have ended after this look: then nothing is left for the next session
            assert number(answer) == 1
        assert is_connected(kept_pid)
        assert not is_connected(given_pid)
        assert number(kept.batch("select a from #kept")) == 5
        others.close()
        assert number(given.batch(PID)) != given_pid


def test_an_unused_transaction_holds_no_connection(
    server: RunningServer, admin: Admin, own_login: Login
) -> None:
    def connections() -> int:
        row = admin.execute(
            "select count(*) from pg_stat_activity where usename = %s and xact_start is not null",
            [own_login.user],
        ).fetchone()
        assert row is not None
        return int(str(row[0]))

    with session(server, own_login) as client:
        client.batch("begin transaction")
        assert connections() == 0
        client.batch("select 1")
        # a read-only transaction ends there too, and locks nothing
        assert connections() == 0
        client.batch("create table #made (a int)")
        assert connections() == 1
        client.batch("rollback")
        assert connections() == 0


# --- resets ---


def test_reset_connection(server: RunningServer) -> None:
    """The packet status that pools set on the first request after they hand over a connection."""
    with session(server) as client:
        client.batch("use log set implicit_transactions on select set_config('work_mem', '5MB', false)")
        client.batch("select 1")
        reply = client.batch("select @@trancount", status=RESET)
        assert reply.startswith(b"\xe3\x03\x00\x12\x00\x00"), "the reset is acknowledged"
        assert number(reply) == 0
        for text, expected in {
            "select current_schema()": "online",
            "select current_setting('work_mem')": "4MB",
        }.items():
            assert expected.encode("utf-16-le") in client.batch(text)


def test_reset_connection_that_keeps_the_transaction(server: RunningServer) -> None:
    with session(server) as client:
        client.batch("begin transaction select 1")
        assert number(client.batch("select @@trancount", status=RESET_KEEPING_TRANSACTION)) == 1
        assert number(client.batch("select @@trancount", status=RESET)) == 0


def test_a_reset_reports_its_rollback(server: RunningServer) -> None:
    """ENVCHANGE 10 with the transaction's descriptor (MS-TDS 2.2.7.9): python-tds and tedious consider their
    transaction open until then.
    """
    with session(server) as client:
        begun = client.batch("begin transaction")
        descriptor = begun[5:13]
        assert begun.startswith(b"\xe3\x0b\x00\x08\x08")
        reply = client.batch("select @@trancount", status=RESET)
        assert b"\xe3\x0b\x00\x0a\x00\x08" + descriptor in reply
        assert number(reply) == 0
        assert b"\xe3\x0b\x00\x0a" not in client.batch("select @@trancount", status=RESET)


def test_sp_reset_connection(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        cursor.execute("set implicit_transactions on use log select 1 as a")
        cursor.callproc("sp_reset_connection")
        assert rows_of(cursor, "select @@trancount, @@tranchained") == [(0, 0)]


def test_prepared_statements_end_with_a_reset(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        handle = cursor.callproc("sp_prepare", (pymssql.output(int), None, "select 1"))[0]
        cursor.callproc("sp_reset_connection")
        with pytest.raises(pymssql.Error, match="handle"):
            cursor.callproc("sp_execute", (handle,))


# --- statements and calls ---


@pytest.mark.parametrize("version", VERSIONS)
def test_statements_and_calls_alternately(clients: Clients, admin: Admin, version: str) -> None:
    """A session's earlier requests determine which threads wait for its next one."""
    entries = [f"turns {version} {number}" for number in range(12)]
    with clients.ct(clients.server.writer, version) as client:
        for number, entry in enumerate(entries):
            assert client.call("enter", [Param("char", entry)]).statuses == [0]
            for count in range(number % 6):
                assert client.language(f"select {count}").rows == [[str(count)]]
    written = admin.execute(
        "select entry from gateway_test.journal where entry = any (%s) order by id", [entries]
    ).fetchall()
    assert written == [(entry,) for entry in entries]


# --- probes of drivers ---


def test_format_only(clients: Clients, nothing_written: Callable[[], AbstractContextManager[None]]) -> None:
    """`set fmtonly on`: columns without rows, and no effects."""
    with clients.ct(clients.server.writer, "7.4") as client:
        with nothing_written():
            answer = client.language("set fmtonly on update online.every_type set a_real = 1 set fmtonly off")
        assert (answer.rows, answer.errors) == ([], [])
        answer = client.language("set fmtonly on select 1 as one, 'x' as letter set fmtonly off")
        assert (answer.columns, answer.rows) == (["one", "letter"], [])
        answer = client.language("set fmtonly on exec status 1")
        assert "exec" in answer.error.text
        assert client.language("set fmtonly off exec status 1").statuses == [1]


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_types_queried_by_odbc(clients: Clients, version: str) -> None:
    with clients.odbc(PLAIN, version) as connection:
        cursor = connection.cursor()
        names = {row.type_name for row in cursor.getTypeInfo().fetchall()}
        assert {"int", "real", "varchar", "datetime", "bit", "numeric"} <= names
        found = {
            row.type_name: (row.column_size, row.nullable)
            for row in cursor.getTypeInfo(pyodbc.SQL_INTEGER).fetchall()
        }
        assert found["int"] == (10, 1)
        # SQL Server's, of which columns of identity are
        assert found.keys() - {"int"} == ({"int identity"} if version == "7.4" else set())


# --- bounds on logins ---


def test_a_wrong_password_delays_only_its_user(server: RunningServer) -> None:
    def attempt(user: str) -> float:
        start = time.monotonic()
        with Client7(server.host, server.port) as client:
            reply = client.log_in7(Login(user, "wrong"))
        assert b"\xad" not in reply[:3]
        return time.monotonic() - start

    # half a second's pause, without a turn
    assert min(attempt("guessed") for _ in range(10)) < 1
    start = time.monotonic()
    attempts = [threading.Thread(target=attempt, args=("guessed",)) for _ in range(4)]
    for thread in attempts:
        thread.start()
    for thread in attempts:
        thread.join()
    assert time.monotonic() - start > 2.5, "one after another, a second apart"
    with ExitStack() as waiting:
        for _ in range(10):
            last = waiting.enter_context(Client7(server.host, server.port))
            last.send(raw_tds.PRELOGIN, raw_tds.prelogin())
            last.receive()
            last.send(raw_tds.LOGIN7, raw_tds.login7(Login("guessed", "wrong")))
        with session(server):
            pass
        answered, _, _ = select.select([last.socket], [], [], 0)
        assert not answered, "others log in at once"


def has_ended(client: socket.socket) -> bool:
    """Whether the server has closed a connection without sending anything."""
    poll = select.poll()
    poll.register(client, select.POLLIN)
    return bool(poll.poll(0))


# gateway/src/limits/admission.rs
MOST_UNKNOWN_OF_ONE = 2048
# gateway/src/client/error.rs: seconds
LOGIN_TIMEOUT = 30


def test_too_many_unfinished_logins(server: RunningServer) -> None:
    """Connections without a login are limited for each address; the oldest are closed for new ones."""
    raise_file_limit()
    with ExitStack() as half_open:

        def another() -> socket.socket:
            return half_open.enter_context(socket.create_connection((server.host, server.port), PATIENCE))

        began = time.monotonic()

        def stays(client: socket.socket) -> bool:
            """Whether it is open, or has waited so long that it was closed for that."""
            return not has_ended(client) or time.monotonic() - began >= LOGIN_TIMEOUT

        oldest, next_oldest, *others = [another() for _ in range(MOST_UNKNOWN_OF_ONE + 1)]
        assert oldest.recv(1) == b""
        assert stays(next_oldest)
        with session(server) as client:
            assert number(client.batch("select 1")) == 1
        assert next_oldest.recv(1) == b""
        assert stays(others[0])


def test_refusals_are_logged_without_secrets(server: RunningServer) -> None:
    log, guess = server.data.with_name("served.stderr"), Login("refused_once", "a-guess-6130")

    def is_logged() -> bool:
        """The log leaves out lines when there are many, as of the refusals of other tests."""
        with Client7(server.host, server.port) as client:
            client.log_in7(guess)
        return guess.user in log.read_text()

    wait_until(is_logged)
    assert guess.password not in log.read_text()


def test_settings_of_a_text_last_until_its_end(clients: Clients) -> None:
    with clients.pymssql(PLAIN) as connection:
        cursor = connection.cursor()
        limited = "set fmtonly on set rowcount 1"
        for text in (f"exec ('{limited}')", f"exec sp_executesql N'{limited}'"):
            cursor.execute(f"{text} select 2 union select 3")
            while cursor.nextset():
                pass
            assert rows_of(cursor, "select 2 as n union select 3 order by n") == [(2,), (3,)]
        cursor.callproc("sp_executesql", ("set fmtonly on",))
        assert rows_of(cursor, "select 2 as n union select 3 order by n") == [(2,), (3,)]


@pytest.mark.parametrize("version", ["7.1", "7.4"])
def test_rowcount_limits_changes_of_later_batches(clients: Clients, version: str) -> None:
    """SET ROWCOUNT (SQL Server): in effect until it is set again."""
    with (
        clients.pymssql(clients.server.reader, version=version) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create table #t (a int) insert #t values (1), (2), (3)")
        cursor.execute("set rowcount 1")
        cursor.execute("delete #t where a > 0")
        assert cursor.rowcount == 1
        cursor.execute("set rowcount 0")
        cursor.execute("delete #t where a > 0")
        assert cursor.rowcount == 2
