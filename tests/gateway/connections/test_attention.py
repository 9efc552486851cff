"""Cancelling a running request, and continuing on the same connection."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pymssql
import pytest

from authors import author_with_schema
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import ATTENTION, BATCH7, NORMAL, VARCHAR, batch7, dbrpc, language
from raw_tds import Param as RawParam
from servers import Login, RunningServer
from tds_clients import PLAIN, Admin, Clients, Param
from waiting import one_sleeps, stopped, wait_until

pytestmark = pytest.mark.usefixtures("functions")
VERSIONS = pytest.mark.parametrize("version", ["5.0", "7.1", "7.4"])
DONE_ERROR, DONE_ATTENTION = 0x02, 0x20


def running(admin: Admin, words: str) -> int:
    found = admin.execute(
        "select count(*) from pg_stat_activity where state = 'active' and query like %s "
        "and pid <> pg_backend_pid()",
        [f"%{words}%"],
    ).fetchone()
    assert found is not None
    return int(str(found[0]))


def waiting_for_locks(admin: Admin, words: str) -> int:
    found = admin.execute(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like %s",
        [f"%{words}%"],
    ).fetchone()
    assert found is not None
    return int(str(found[0]))


@VERSIONS
def test_a_running_query_is_cancelled(clients: Clients, admin: Admin, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        for _ in range(3):
            client.cancelled_when(
                "select pg_sleep(1000) as cancelled_one", lambda: running(admin, "cancelled_one")
            )
            assert client.language("select 1 as one").rows == [["1"]]
            assert running(admin, "cancelled_one") == 0


@VERSIONS
def test_a_cancel_while_rows_are_sent(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        for rows in (1, 10, 1000):
            text = "select generate_series(1, 10000000) as i, repeat('x', 200)"
            assert len(client.cancelled_after_rows(text, rows).rows) == rows
            assert client.language("select 1 as one").rows == [["1"]]


@VERSIONS
def test_a_cancel_never_hits_the_next_statement(clients: Clients, version: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        for i in range(40):
            client.cancelled(f"select pg_sleep({(i % 8) / 1000})", after=(i % 5) / 1000)
            answer = client.language(f"select {i} as i from pg_sleep(0.002)")
            assert (answer.errors, answer.rows) == ([], [[str(i)]])


@VERSIONS
def test_later_statements_of_the_batch_do_not_run(clients: Clients, admin: Admin, version: str) -> None:
    admin.execute("truncate gateway_test.journal")
    sleep = "select pg_sleep(1000)"
    # longer than a call may run in a group before group commit starts it again alone
    slowly = (
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
        " and clock_timestamp() - query_start > interval '0.3 s'"
    )
    with clients.ct(clients.server.writer, version) as client:
        # a call that is not sent yet is withdrawn; with a connection all are sent
        assert client.language("exec enter 'first'").errors == []
        client.cancelled_when(f"exec enter 'before' {sleep} exec enter 'after'", lambda: one_sleeps(admin))
        client.cancelled_when(
            "exec enter_slowly 'slow', 4 exec enter 'after'",
            lambda: admin.execute(slowly).fetchone() != (0,),
        )
        client.cancelled_when(
            f"begin tran exec enter_myself 'kept' {sleep} exec enter 'after'", lambda: one_sleeps(admin)
        )
        assert client.language("select @@trancount").rows == [["1"]]
        assert client.language("commit").errors == []
    found = admin.execute("select entry from gateway_test.journal order by id").fetchall()
    assert found == [("first",), ("before",), ("slow",), ("kept",)]


@pytest.mark.parametrize(("setting", "left"), [("on", "0"), ("off", "1")])
def test_a_cancel_ends_the_transaction_under_xact_abort(
    clients: Clients, admin: Admin, setting: str, left: str
) -> None:
    with clients.ct(clients.server.reader, "7.4") as client:
        client.language("create table #t (a int)")
        client.cancelled_when(
            f"set xact_abort {setting} begin tran insert #t values (1) select pg_sleep(1000)",
            lambda: one_sleeps(admin),
        )
        assert client.language("select @@trancount select count(*) from #t").rows == [[left], [left]]


def test_a_cancelled_call(clients: Clients, admin: Admin) -> None:
    """A cancel does not undo a running put: its answer counts."""
    admin.execute("truncate gateway_test.journal")
    with clients.impatient(clients.server.writer) as connection:
        cursor = connection.cursor()
        with pytest.raises(pymssql.Error):
            cursor.execute("select pg_sleep(20)")
    wait_until(lambda: not one_sleeps(admin), lambda: "nobody waits for it any more")
    with clients.ct(clients.server.writer) as client:
        assert client.call("enter", [Param("char", "a")]).statuses == [0]


def test_a_put_is_cancelled_before_it_is_sent_or_not_at_all(server: RunningServer, admin: Admin) -> None:
    """One call waits in PostgreSQL for a lock, another one for its turn."""
    admin.execute("truncate gateway_test.journal")
    raw = [RawClient(server.host, server.port) for _ in range(2)]
    with psycopg.connect(server.dsn) as blocking, raw[0] as sent, raw[1] as waiting:
        for index, client in enumerate(raw):
            assert client.log_in5(server.writer).login == 5
            assert client.call("enter", [RawParam(VARCHAR, f"before {index}")]).statuses == [0]
        blocking.execute("lock table gateway_test.journal in share mode")
        for client, entry in ((sent, "sent"), (waiting, "waiting")):
            client.send(NORMAL, dbrpc("enter", [RawParam(VARCHAR, entry)]))
            wait_until(lambda: waiting_for_locks(admin, "enter"))
            client.send(ATTENTION, b"")
        assert read_reply(waiting.receive()).done == [(DONE_ATTENTION, 0)]
        blocking.rollback()
        reply = read_reply(sent.receive())
        assert (reply.statuses, reply.errors) == ([0], [])
        assert read_reply(sent.receive()).done == [(DONE_ATTENTION, 0)]
        for index, client in enumerate(raw):
            assert client.call("enter", [RawParam(VARCHAR, f"after {index}")]).statuses == [0]
    found = admin.execute("select entry from gateway_test.journal order by id").fetchall()
    assert [str(entry) for (entry,) in found] == ["before 0", "before 1", "sent", "after 0", "after 1"]


def test_a_client_that_disconnects_ends_its_query(
    clients: Clients, server: RunningServer, admin: Admin
) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        client.send(NORMAL, language("select pg_sleep(60) as left_alone"))
        wait_until(lambda: running(admin, "left_alone"))
    wait_until(lambda: not running(admin, "left_alone"), lambda: "nobody waits for it any more")


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a pending signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (pending,) = (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending, 16) >> (number - 1) & 1)


def wait_for_cancel(pid: int) -> None:
    """Waits until a stopped process has the signal of a cancel. After a change of the catalogue the gateway
    asks for declarations first, and cancels when it has the answer: the process goes on then."""
    late = time.monotonic() + 10
    wait_until(lambda: is_pending(pid, signal.SIGINT) or time.monotonic() > late)


class Connection(NamedTuple):
    """A session's connection to PostgreSQL: its process there, and the ports of both ends."""

    pid: int
    port: int
    gateway_port: int

    def has_unread(self) -> bool:
        """Whether bytes have arrived that the process has not read yet (proc_pid_net(5), /proc/net/tcp)."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, here, there, _, queues, *_ = line.split()
            ports = (int(here.split(":")[1], 16), int(there.split(":")[1], 16))
            if ports == (self.port, self.gateway_port):
                return int(queues.split(":")[1], 16) > 0
        return False


def prepared(client: RawClient, server: RunningServer, admin: Admin, words: str) -> Connection:
    """Makes a session prepare `select pg_sleep(…) as words`, which is sent to PostgreSQL at once from then
    on."""
    assert client.log_in5(PLAIN).login == 5
    for _ in range(2):
        assert client.language(f"select pg_sleep(0) as {words}").errors == []
    pid = int(str(client.language("select pg_backend_pid() as pid").rows[0][0]))
    (port,) = admin.execute("select client_port from pg_stat_activity where pid = %s", [pid]).fetchone() or ()
    return Connection(pid, server.postgres_port, int(str(port)))


@pytest.mark.parametrize("goes", [False, True])
def test_a_cancel_that_comes_before_postgresql_has_begun_is_not_lost(
    server: RunningServer, admin: Admin, goes: bool
) -> None:
    """PostgreSQL ignores a cancel while it waits for a statement, which may be in transit."""
    with RawClient(server.host, server.port) as client:
        connection = prepared(client, server, admin, "begun_late")
        with stopped(connection.pid):
            client.send(NORMAL, language("select pg_sleep(1000) as begun_late"))
            wait_until(connection.has_unread)
            if goes:
                client.socket.close()
            else:
                client.send(ATTENTION, b"")
            wait_for_cancel(connection.pid)
        if not goes:
            assert read_reply(client.receive()).done[-1] == (DONE_ATTENTION, 0)
            assert client.language("select 1 as one").rows == [[1]]
    wait_until(lambda: not running(admin, "begun_late"), lambda: "the statement was not cancelled")


def test_a_cancel_is_acknowledged_though_postgresql_is_lost_with_it(
    server: RunningServer, admin: Admin
) -> None:
    with RawClient(server.host, server.port) as client:
        connection = prepared(client, server, admin, "lost_with_it")
        with stopped(connection.pid):
            client.send(NORMAL, language("select pg_sleep(1000) as lost_with_it"))
            wait_until(connection.has_unread)
            client.send(ATTENTION, b"")
            wait_for_cancel(connection.pid)
            admin.execute("select pg_terminate_backend(%s)", [connection.pid])
            wait_until(lambda: is_pending(connection.pid, signal.SIGTERM))
        lost = read_reply(client.receive())
        assert [error.number for error in lost.errors] == [6005]
        assert read_reply(client.receive()).done == [(DONE_ATTENTION, 0)]
        assert client.language("select 1 as one").rows == [[1]]


@pytest.mark.parametrize("goes", [False, True])
def test_a_cancel_while_a_statement_waits_to_be_prepared(
    server: RunningServer, admin: Admin, goes: bool
) -> None:
    """PostgreSQL locks a table when it parses the statement that names it."""
    words = f"not_prepared_{int(goes)}"
    with psycopg.connect(server.dsn) as blocking, RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        blocking.execute("lock table weeks.sr_rf in access exclusive mode")
        client.send(NORMAL, language(f"select count(*) as {words} from log..sr_rf"))
        wait_until(lambda: waiting_for_locks(admin, words))
        if goes:
            client.socket.close()
        else:
            client.send(ATTENTION, b"")
            assert read_reply(client.receive()).done[-1] == (DONE_ATTENTION, 0)
            assert client.language("select 1 as one").rows == [[1]]
        wait_until(lambda: not waiting_for_locks(admin, words), lambda: "it waits for the lock still")


@pytest.fixture
def author(server: RunningServer) -> Iterator[Login]:
    """A login with a schema of its name."""
    login = Login("late_author", "late_author")
    with author_with_schema(server, login, login.user):
        yield login


@pytest.mark.parametrize("goes", [False, True])
def test_a_cancel_while_a_definition_waits(
    server: RunningServer, admin: Admin, author: Login, goes: bool
) -> None:
    """Another session may be changing the same definition."""
    text = "create procedure made_late as select 1 as one"

    def made() -> bool:
        return bool(admin.execute("select from pg_proc where proname = 'made_late'").fetchall())

    with psycopg.connect(server.dsn) as blocking, RawClient(server.host, server.port) as client:
        assert client.log_in5(author).login == 5
        assert client.language(f"use {author.user}").errors == []
        blocking.execute("lock table pg_catalog.pg_proc in share mode")
        client.send(NORMAL, language(text))
        wait_until(lambda: waiting_for_locks(admin, "create_procedure"))
        if goes:
            client.socket.close()
        else:
            client.send(ATTENTION, b"")
            assert read_reply(client.receive()).done[-1] == (DONE_ATTENTION, 0)
            assert client.language("select 1 as one, @@trancount as depth").rows == [[1, 0]]
        wait_until(lambda: not waiting_for_locks(admin, "create_procedure"), lambda: "it waits still")
        blocking.rollback()
        if not goes:
            assert not made()
            assert client.language(text).errors == []
    assert made() == (not goes)


@pytest.mark.parametrize("goes", [False, True])
def test_a_cancel_while_a_commit_runs(server: RunningServer, admin: Admin, goes: bool) -> None:
    """Deferred triggers run then."""
    admin.execute(
        "truncate gateway_test.journal; "
        "create function gateway_test.dawdle() returns trigger language plpgsql "
        "as $$ begin perform pg_sleep(1000); return null; end $$; "
        "create constraint trigger late after insert on gateway_test.journal deferrable initially deferred "
        "for each row execute function gateway_test.dawdle()"
    )
    try:
        with RawClient(server.host, server.port) as client:
            assert client.log_in5(server.writer).login == 5
            assert client.language("begin tran exec enter_myself 'undone'").errors == []
            client.send(NORMAL, language("commit"))
            wait_until(lambda: one_sleeps(admin))
            if goes:
                client.socket.close()
            else:
                client.send(ATTENTION, b"")
                assert read_reply(client.receive()).done[-1] == (DONE_ATTENTION, 0)
                assert client.language("select @@trancount as open").rows == [[0]]
            wait_until(lambda: not one_sleeps(admin), lambda: "the commit was not cancelled")
    finally:
        admin.execute("drop function gateway_test.dawdle() cascade")
    assert admin.execute("select entry from gateway_test.journal").fetchall() == []


def test_an_attention_with_nothing_running_is_acknowledged(server: RunningServer) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        client.send(ATTENTION, b"")
        assert read_reply(client.receive()).done == [(DONE_ATTENTION, 0)]
        assert client.language("select 1 as one").rows == [[1]]


def test_an_attention_inside_a_request_drops_it(server: RunningServer, admin: Admin) -> None:
    with RawClient(server.host, server.port) as client:
        assert client.log_in5(PLAIN).login == 5
        whole = client.packets(NORMAL, language(f"select '{'x' * 2000}' as never"))
        client.socket.sendall(whole[:1024])
        client.send(ATTENTION, b"")
        assert read_reply(client.receive()).done == [(DONE_ATTENTION, 0)]
        assert client.language("select 1 as one").rows == [[1]]


def test_an_attention_sent_with_the_request(server: RunningServer) -> None:
    """The answer ends with the acknowledgement, whatever part of the request has run."""
    with RawClient(server.host, server.port) as client:
        assert b"\xad" in client.log_in7(PLAIN)
        for _ in range(20):
            request = client.packets(BATCH7, batch7("select 1 as one select 2 as two"))
            client.socket.sendall(request + client.packets(ATTENTION, b""))
            reply = client.receive()
            while not _ends_with_attention(reply):
                reply = client.receive()


def test_the_acknowledgement_of_a_cancel_is_a_reply_of_its_own(server: RunningServer, admin: Admin) -> None:
    """From 7.2 on, after an answer that ends with an error: tedious and mssql-jdbc wait for both."""
    with RawClient(server.host, server.port) as client:
        assert b"\xad" in client.log_in7(PLAIN)
        for text in (
            "select pg_sleep(30) as to_cancel",
            "select repeat('x', 100) as to_cancel from generate_series(1, 10000000)",
        ):
            client.send(BATCH7, batch7(text))
            wait_until(lambda: running(admin, "to_cancel"))
            client.send(ATTENTION, b"")
            reply, acknowledgement = client.receive(), client.receive()
            assert int.from_bytes(reply[-12:-10], "little") == DONE_ERROR
            assert (len(acknowledgement), _ends_with_attention(acknowledgement)) == (13, True)


def _ends_with_attention(reply: bytes) -> bool:
    status = int.from_bytes(reply[-12:-10], "little")
    return reply[-13] == 0xFD and status & DONE_ATTENTION != 0
