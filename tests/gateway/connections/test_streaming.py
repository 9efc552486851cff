"""Results longer than the memory: rows are passed on at the client's pace, and stop when it cancels."""

import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import psutil
import pymssql
import pytest
from hostile_sessions import BIG, attack, put_row

import raw_tds
from raw_client import RawClient
from raw_replies import read_reply
from raw_tds import ATTENTION, BATCH7, HEADER, LAST, NORMAL, VARCHAR, Param, batch7, language
from servers import Login, RunningServer, ringlog
from tds_clients import PLAIN, Admin, Clients, errors_of, rows_of
from waiting import wait_until
from writing import Writers

pytestmark = pytest.mark.usefixtures("functions")
VERSIONS = pytest.mark.parametrize("version", ["5.0", "7.4"])
MiB = 1 << 20
ROWS = 1_500_000
DONE_ATTENTION = 0x20


def query(rows: int = ROWS) -> str:
    columns = "cast(1.5 as float) as value, 'twelve bytes' as words"
    return f"select generate_series(1, {rows}) as streamed_row, {columns}"


class Reading:
    """A client that reads a long reply packet by packet."""

    def __init__(self, server: RunningServer, version: str, text: str) -> None:
        self.client = RawClient(server.host, server.port, timeout=60)
        if version == "5.0":
            self.client.log_in5(PLAIN, packet_size=8192)
            self.client.send(NORMAL, language(text))
        else:
            self.client.log_in7(PLAIN, packet_size=32768)
            self.client.send(BATCH7, batch7(text))
        self._stream = self.client.socket.makefile("rb", buffering=MiB)
        self.bytes = 0
        self.end = b""

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self.client.socket.close()

    def packets(self) -> Iterator[int]:
        """Reads up to the end of a reply; the bytes read so far after each packet."""
        while True:
            _, status, length = struct.unpack(">BBH", self._stream.read(HEADER)[:4])
            self.end = (self.end + self._stream.read(length - HEADER))[-64:]
            self.bytes += length
            yield self.bytes
            if status & LAST:
                return

    def read(self, most: int) -> None:
        """Reads about this many bytes."""
        until = self.bytes + most
        for so_far in self.packets():
            if so_far > until:
                return

    def done(self, version: str) -> tuple[int, int]:
        """Status and row count of the last DONE."""
        shape = "<BHHI" if version == "5.0" else "<BHHQ"
        token, status, _, count = struct.unpack(shape, self.end[-struct.calcsize(shape) :])
        assert token == 0xFD, self.end
        return status, count


def backend(admin: Admin, words: str = "streamed_row") -> list[tuple[object, ...]]:
    """State and wait of the connections that run the query."""
    return admin.execute(
        "select wait_event from pg_stat_activity where state = 'active' and query like %s "
        "and pid <> pg_backend_pid()",
        [f"%{words}%"],
    ).fetchall()


def waits_for_good(admin: Admin) -> bool:
    """Whether PostgreSQL waits for the client, and not only for the gateway's turn."""
    for _ in range(15):
        if backend(admin) != [("ClientWrite",)]:
            return False
        time.sleep(0.02)
    return True


def takes_little(server: RunningServer, read: Callable[[Callable[[], None]], int]) -> None:
    """`read` reads a reply, calls its argument now and then, and returns the number of bytes, of which the
    server needs at most a third. Its other work uses memory too, for example its first summaries, but not
    each time."""
    process = psutil.Process(server.process.pid)
    for _ in range(3):
        before = process.memory_info().rss
        seen = [before]
        length = read(lambda seen=seen: seen.append(process.memory_info().rss))
        if max(seen) - before < length / 3:
            return
    pytest.fail(f"{(max(seen) - before) / MiB:.1f} MiB for {length / MiB:.0f}")


@VERSIONS
def test_rows_wait_for_a_slow_client(server: RunningServer, admin: Admin, version: str) -> None:
    def read(look: Callable[[], None]) -> int:
        with Reading(server, version, query()) as reading:
            reading.read(MiB)
            # the client pauses, and so does PostgreSQL
            wait_until(lambda: waits_for_good(admin), lambda: backend(admin))
            for so_far in reading.packets():
                if so_far % (8 * MiB) < 32768:
                    look()
            assert reading.done(version) == (0x10, ROWS)
            assert reading.bytes > ROWS * 20
            return reading.bytes

    takes_little(server, read)


@VERSIONS
def test_a_cancel_half_way(server: RunningServer, admin: Admin, version: str) -> None:
    with Reading(server, version, query(100 * ROWS)) as reading:
        reading.read(16 * MiB)
        reading.client.send(ATTENTION, b"")
        for so_far in reading.packets():
            assert so_far < 64 * MiB
        while reading.done(version)[0] & DONE_ATTENTION == 0:
            for _ in reading.packets():
                pass
        assert backend(admin) == []


def test_a_client_that_stops_reading_delays_no_other(server: RunningServer) -> None:
    with Reading(server, "7.4", query()) as slow, Reading(server, "5.0", query(1000)) as other:
        slow.read(MiB)
        other.read(10 * MiB)
        assert other.done("5.0") == (0x10, 1000)


# --- messages ---


@pytest.fixture(scope="module")
def chatter(admin: Admin, functions: None) -> Iterator[None]:
    """Procedures that send messages of 4,000 characters each: by group commit, and after a result set."""
    admin.execute(
        "create function gateway_test.chatter(messages int) returns int language plpgsql security definer "
        "set search_path = pg_catalog, pg_temp as $$ begin "
        "for i in 1..messages loop raise notice '%', repeat('x', 4000); end loop; return messages; end $$; "
        "alter function gateway_test.chatter(int) owner to ringlog_owner; "
        "create function gateway_test.chatter_behind_rows(messages int) returns int language plpgsql "
        "as $$ declare first refcursor := 'first'; begin open first for select 1 as i; "
        "raise notice using errcode = '01R01', message = 'first'; "
        "for i in 1..messages loop raise notice '%', repeat('x', 4000); end loop; return 0; end $$; "
        "notify ringlog_catalogue"
    )
    yield
    admin.execute(
        "drop function gateway_test.chatter(int), gateway_test.chatter_behind_rows(int); "
        "notify ringlog_catalogue"
    )


@pytest.mark.usefixtures("chatter")
@VERSIONS
def test_messages_wait_for_a_slow_client(server: RunningServer, admin: Admin, version: str) -> None:
    messages = 10_000

    def read(look: Callable[[], None]) -> int:
        with Reading(server, version, f"exec gateway_test..chatter {messages}") as reading:
            reading.read(MiB)
            waiting = [("ClientWrite",)]
            wait_until(lambda: backend(admin, "chatter") == waiting, lambda: backend(admin, "chatter"))
            with RawClient(server.host, server.port) as other:
                assert other.log_in5(server.writer).login == 5
                assert other.call("enter", [Param(VARCHAR, f"{version}, beside messages")]).statuses == [0]
            look()
            for so_far in reading.packets():
                if so_far % (8 * MiB) < 32768:
                    look()
            assert reading.bytes > messages * 4000
            # the return status is there
            assert messages.to_bytes(4, "little") in reading.end
            return reading.bytes

    takes_little(server, read)


@pytest.mark.usefixtures("chatter")
def test_messages_without_an_end_stop_with_their_client(server: RunningServer, admin: Admin) -> None:
    with Reading(server, "7.4", "exec gateway_test..chatter 2000000000") as reading:
        reading.read(MiB)
        wait_until(lambda: backend(admin, "chatter") == [("ClientWrite",)], lambda: backend(admin, "chatter"))
        reading.client.send(ATTENTION, b"")
        for so_far in reading.packets():
            assert so_far < 64 * MiB
        while reading.done("7.4")[0] & DONE_ATTENTION == 0:
            for _ in reading.packets():
                pass
    with Reading(server, "7.4", "exec gateway_test..chatter 2000000000") as reading:
        reading.read(MiB)
    wait_until(lambda: not backend(admin, "chatter"), lambda: "nobody listens any more")


@pytest.mark.usefixtures("chatter")
def test_messages_after_a_result_set_have_a_limit(server: RunningServer, admin: Admin) -> None:
    with RawClient(server.host, server.port, timeout=60) as client:
        assert client.log_in5(PLAIN, packet_size=8192).login == 5
        reply = client.language("begin tran exec gateway_test..chatter_behind_rows 100 commit")
        assert (reply.rows, len(reply.messages), reply.statuses) == ([[1]], 100, [0])
        reply = client.language("begin tran exec gateway_test..chatter_behind_rows 2000000000")
        (error,) = reply.errors
        assert "at most 4 MiB" in error.text
        assert client.language("rollback select 1 as one").rows == [[1]]
    assert backend(admin, "chatter_behind_rows") == []


# --- fast and slow readers delay neither writers nor other readers ---

ENDLESS = "select generate_series(1, 2000000000) as endless_row, cast('twelve bytes' as char(200)) as words"


@pytest.fixture
def writers(clients: Clients) -> Iterator[Writers]:
    """Two writers that write continuously."""
    found = Writers(clients, "put_sr_rf", datetime(2031, 1, 1), rows=10)
    with found.running(2):
        found.wait_for_more(5)
        yield found
    assert found.errors == []


@pytest.fixture
def slow_readers(server: RunningServer) -> Iterator[list[RawClient]]:
    """More readers than may stream at the same time. Each has read a packet of an endless result set."""
    with ExitStack() as stack:
        readers = []
        for _ in range(2 * (os.cpu_count() or 1) + 2):
            reader = RawClient(server.host, server.port, timeout=100)
            stack.callback(reader.socket.close)
            # a small window, so that the server soon cannot send
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.log_in5(PLAIN, packet_size=512)
            reader.send(NORMAL, language(ENDLESS))
            reader.socket.recv(512)
            readers.append(reader)
        yield readers


def backends(admin: Admin, words: str) -> list[int]:
    """The processes of PostgreSQL that run a query, or ran it last."""
    found = admin.execute(
        "select pid from pg_stat_activity where query like %s and pid <> pg_backend_pid()", [f"%{words}%"]
    )
    return [int(str(pid)) for (pid,) in found.fetchall()]


def nice_of(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_committing_threads_have_priority_and_readers_have_not(
    server: RunningServer, clients: Clients, admin: Admin
) -> None:
    shown = ringlog("status", "--data", server.data).stdout
    priority = re.search(r"^writers first, (at nice (-\d+)|by short slices alone)$", shown, re.M)
    assert priority is not None, shown
    usual = nice_of(os.getpid())
    first = min(usual, int(priority[2])) if priority[2] else usual
    with clients.pymssql(server.reader) as reader, clients.pymssql(server.writer) as writer:
        with reader.cursor() as cursor:
            cursor.execute("select count(*) as a_reader from log..sr_rf")
            cursor.fetchall()
        (reading,) = wait_until(lambda: backends(admin, "a_reader"))
        assert nice_of(reading) == usual
        writer.cursor().callproc("put_sr_rf", (1, datetime(2030, 1, 1), 1.0, 1))
        committing = [
            int(str(pid))
            for (pid,) in admin.execute(
                "select pid from pg_stat_activity where application_name = 'ringlog group commit'"
            ).fetchall()
        ]
        # one that has just been made gets it a moment later
        wait_until(lambda: {nice_of(pid) for pid in committing} == {first})
        if priority[2] and Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1":
            for pid in committing:
                group = Path(f"/proc/{pid}/autogroup")
                wait_until(
                    lambda group=group: group.read_text().endswith(f" nice {priority[2]}\n"), group.read_text
                )


@pytest.mark.parametrize("own_session", [True, False])
def test_a_gateway_with_its_own_session_gives_it_priority(own_session: bool) -> None:
    group = Path("/proc/self/autogroup")
    usual = group.read_text() if group.exists() else ""
    program = (
        "from pathlib import Path; from ringlog.gateway import Gateway\n"
        "try: Gateway('host=/nowhere dbname=none user=nobody password=none')\n"
        "except (ValueError, OSError): pass\n"
        "group = Path('/proc/self/autogroup'); print(group.read_text() if group.exists() else '', end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        start_new_session=own_session,
        check=True,
    )
    may = os.geteuid() == 0 and usual
    nice = -10 if own_session and may else re.sub(r".* nice ", "", usual).strip()
    assert done.stdout.strip().endswith(f" nice {nice}" if usual else "")


def test_writers_and_other_readers_continue_despite_stalled_readers(
    clients: Clients, admin: Admin, writers: Writers, slow_readers: list[RawClient]
) -> None:
    wait_until(lambda: len(backends(admin, "endless_row")) == len(slow_readers))
    with clients.pymssql(clients.server.reader) as reader, reader.cursor() as cursor:
        # a byte at a time, from all of them
        for _ in range(20):
            for slow in slow_readers:
                assert slow.socket.recv(1)
            writers.wait_for_more(1)
        cursor.execute("select generate_series(1, 20000), cast('twelve bytes' as char(200))")
        assert len(cursor.fetchall()) == 20000
        writers.wait_for_more(10)
    assert len(backends(admin, "endless_row")) == len(slow_readers)


def test_writers_continue_during_a_storm_of_logins(
    server: RunningServer, clients: Clients, admin: Admin, writers: Writers
) -> None:
    with ExitStack() as stack:
        storm = [RawClient(server.host, server.port, timeout=100) for _ in range(200)]
        for client in storm:
            stack.callback(client.socket.close)
            client.send(raw_tds.LOGIN5, raw_tds.login5(PLAIN))
        writers.wait_for_more(50)
        answers = [client.receive() for client in storm]
        assert [read_reply(answer).login for answer in answers] == [5] * len(storm)
        writers.wait_for_more(5)


def test_writers_continue_during_catalogue_queries_and_reports(clients: Clients, writers: Writers) -> None:
    def ask(text: str) -> int:
        with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
            return len(rows_of(cursor, text))

    texts = [
        "exec sp_sysmon '00:00:01'",
        "exec sp_columns '%'",
        "select * from information_schema.columns",
        "exec sp_who",
    ]
    with ThreadPoolExecutor(len(texts)) as pool:
        asked = [pool.submit(ask, text) for text in texts]
        writers.wait_for_more(50)
        assert all(answer.result(100) > 0 for answer in asked)


def test_a_login_reads_no_more_rows_than_it_may(clients: Clients, admin: Admin) -> None:
    admin.execute("alter role plain set \"tsql.row_limit\" = '1000'")
    try:
        with clients.pymssql(PLAIN) as connection, connection.cursor() as cursor:
            cursor.execute("select generate_series(1, 1000)")
            assert len(cursor.fetchall()) == 1000
            cursor.execute("select generate_series(1, 1001)")
            with pytest.raises(pymssql.Error) as refused:
                cursor.fetchall()
            error = errors_of(refused.value)
            assert "This login may read 1000 rows by one statement" in error.text
            assert rows_of(cursor, "select count(*) from generate_series(1, 1001) as g (n)") == [(1001,)]
    finally:
        admin.execute('alter role plain reset "tsql.row_limit"')
    with clients.pymssql(PLAIN) as connection, connection.cursor() as cursor:
        cursor.execute("select generate_series(1, 1001)")
        assert len(cursor.fetchall()) == 1001


# --- the memory of a session is bounded, and so is that of all sessions together ---

MEBI = 2**20
NO_MEMORY = 701


@VERSIONS
@pytest.mark.parametrize(
    "text",
    [
        f"declare @a varchar(max) set @a = {BIG.format(1000)} while 1 = 1 set @a = @a + @a",
        f"declare @a varchar(max) set @a = {BIG.format(20 * MEBI)} declare @b varchar(max) select @b = @a",
        f"declare @a varchar(max) set @a = {BIG.format(700 * MEBI)}",
        f"select len({BIG.format(700 * MEBI)})",
        f"select {BIG.format(100 * MEBI)}",
    ],
    ids=["a loop", "two variables", "a long value", "a value of PostgreSQL's", "a row"],
)
def test_a_batch_that_needs_more_is_ended(clients: Clients, version: str, text: str) -> None:
    with clients.ct(clients.server.reader, version) as client:
        answer = client.language(f"{text} print 'not reached'")
        assert [error.number for error in answer.errors] == [NO_MEMORY], answer.messages
        assert "memory" in answer.error.text
        assert client.language("select 1").rows == [["1"]], "the session goes on"


@pytest.mark.long
def test_variables_of_ended_batches_do_not_count(clients: Clients) -> None:
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        for _ in range(8):
            cursor.execute(f"declare @a varchar(max) = {BIG.format(25 * MEBI)} select len(@a)")
            assert cursor.fetchall() == [(25 * MEBI,)]


def test_a_login_has_a_limit_of_temporary_files(
    clients: Clients, server: RunningServer, own_login: Login
) -> None:
    def sort() -> object:
        with clients.pymssql(own_login) as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from (select distinct i from generate_series(1, 500000) i) as d")
            return cursor.fetchone()

    def limit(size: str) -> None:
        done = ringlog("user", "limit", own_login.user, "--temporary-files", size, "--data", server.data)
        assert done.returncode == 0, done.stderr

    limit("1MB")
    assert "temporary files 1MB" in ringlog("user", "list", "--data", server.data).stdout
    with pytest.raises(pymssql.Error, match="temp_file_limit"):
        sort()
    limit("none")
    assert sort() == (500000,)


@pytest.mark.long
def test_hostile_sessions_take_no_more(clients: Clients, server: RunningServer) -> None:
    """A short run of tests/long/gateway/test_hostile_memory.py."""
    seen = attack(server, sessions=12, seconds=20, put=put_row)
    assert seen.failed == []
    assert len(seen.latencies) > 20  # if calls waited for a hostile session there would be few
    assert seen.numbers[NO_MEMORY] > 3
    assert seen.most_of_gateway < 600 * MEBI
    assert seen.most_of_a_backend < 700 * MEBI
    assert psutil.pid_exists(server.process.pid)
