"""Results longer than the memory: rows are passed on at the client's pace, and stop when it cancels."""

import struct
import time
from collections.abc import Iterator

import psutil
import pytest

from raw_tds import ATTENTION, BATCH7, HEADER, LAST, NORMAL, VARCHAR, Param, RawClient, batch7, language
from servers import RunningServer
from tds_clients import PLAIN, Admin
from waiting import wait_until

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


@VERSIONS
def test_rows_wait_for_a_slow_client(server: RunningServer, admin: Admin, version: str) -> None:
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    most = 0
    with Reading(server, version, query()) as reading:
        reading.read(MiB)
        # the client pauses, and so does PostgreSQL
        wait_until(lambda: waits_for_good(admin), lambda: backend(admin))
        for so_far in reading.packets():
            if so_far % (8 * MiB) < 32768:
                most = max(most, process.memory_info().rss)
        assert reading.done(version) == (0x10, ROWS)
        assert reading.bytes > ROWS * 20
    # the process has other work too
    assert most - before < reading.bytes / 3, f"{(most - before) / MiB:.1f} MiB for {reading.bytes / MiB:.0f}"


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
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    messages = 10_000
    with Reading(server, version, f"exec gateway_test..chatter {messages}") as reading:
        reading.read(MiB)
        wait_until(lambda: backend(admin, "chatter") == [("ClientWrite",)], lambda: backend(admin, "chatter"))
        with RawClient(server.host, server.port) as other:
            assert other.log_in5(server.writer).login == 5
            assert other.call("enter", [Param(VARCHAR, f"{version}, beside messages")]).statuses == [0]
        most = process.memory_info().rss
        for so_far in reading.packets():
            if so_far % (8 * MiB) < 32768:
                most = max(most, process.memory_info().rss)
        assert reading.bytes > messages * 4000
        # the return status is there
        assert messages.to_bytes(4, "little") in reading.end
    assert most - before < reading.bytes / 3, f"{(most - before) / MiB:.1f} MiB for {reading.bytes / MiB:.0f}"


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
