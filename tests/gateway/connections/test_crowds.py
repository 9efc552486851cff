"""Many slow clients: those of one login do not delay other logins, and one that blocks others gets an
error."""

import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import raw_tds
from raw_client import RawClient
from raw_tds import BATCH7
from ringlog.clients import call, connect
from servers import Login, RunningServer, ringlog, serving
from waiting import wait_until

pytestmark = pytest.mark.long

SLOW = Login("slow", "slow")
OTHER = Login("other", "other")
LIMITED = Login("limited", "limited")
NEW = Login("new", "new")
PACKET = 32_000
MiB = 1 << 20
MOST_CONNECTIONS = 60
OF_READERS = 60 - 3 - 20 - 10
"""without those that PostgreSQL keeps for a superuser, the server's own, and those kept for writers"""


@pytest.fixture(scope="module")
def crowded(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server whose PostgreSQL has few connections."""
    data = temporary_directory / "crowds"
    with serving(data) as running:
        running.sql(f"alter system set max_connections = {MOST_CONNECTIONS}")
        for login in (SLOW, OTHER, LIMITED, NEW):
            words = ["user", "add", login.user, "--reader", "--password-stdin", "--data", running.data]
            assert ringlog(*words, stdin=login.password).returncode == 0
    with serving(data) as running:
        yield running


@contextmanager
def session(server: RunningServer, login: Login, packet_size: int = 4096) -> Iterator[RawClient]:
    with RawClient(server.host, server.port) as client:
        assert b"\xad" in client.log_in7(login, packet_size=packet_size)
        yield client


def begin_request(client: RawClient, length: int) -> None:
    """Sends this many bytes of a request and the header of its next packet."""
    header = struct.pack(">BBHHBB", BATCH7, 0, PACKET + 8, 0, 1, 0)
    client.socket.sendall((header + bytes(PACKET)) * (length // PACKET + 1) + header)


def answer_of_long(client: RawClient, length: int) -> bytes:
    """The answer to a batch of about this many bytes."""
    client.packet_size = PACKET
    return client.batch("select 7 /*" + "x" * (length // 2) + "*/")


# the row, or the error of a text that is too long
ANSWERS = (struct.pack("<BBi", 0xD1, 4, 7), "The batch has".encode("utf-16-le"))


@pytest.mark.parametrize(
    ("count", "length"), [(64, 70_000), (8, 1_150_000), (2, 8_900_000)], ids=["70 KB", "1.1 MB", "8.5 MB"]
)
def test_long_requests_pass_slow_ones(crowded: RunningServer, count: int, length: int) -> None:
    """For another login at once; for the same login after a client that stopped sending was disconnected with
    an error.
    """
    with ExitStack() as open_sessions:
        slow = [open_sessions.enter_context(session(crowded, SLOW, PACKET)) for _ in range(count)]
        for client in slow:
            client.socket.settimeout(5)
            # a request without a place is not read
            with suppress(TimeoutError):
                begin_request(client, length)
        for login in (OTHER, SLOW):
            client = open_sessions.enter_context(session(crowded, login, PACKET))
            answer = answer_of_long(client, max(length, 1_600_000))
            assert any(words in answer for words in ANSWERS)

        def is_told(client: RawClient) -> bool:
            client.socket.setblocking(False)
            with suppress(BlockingIOError, ConnectionError):
                return "while others waited for its place".encode("utf-16-le") in client.socket.recv(65536)
            return False

        wait_until(lambda: any(is_told(client) for client in slow))


def test_readers_that_do_not_read_leave_writers_their_connections(crowded: RunningServer) -> None:
    """More sessions with unread results than PostgreSQL has connections, and then writers."""
    with ExitStack() as open_sessions, psycopg.connect(crowded.dsn, autocommit=True) as admin:
        for login in (SLOW, OTHER):
            for _ in range(OF_READERS):
                client = open_sessions.enter_context(session(crowded, login))
                client.send(BATCH7, raw_tds.batch7("select * from generate_series(1, 10000000)"))

        def connections() -> int:
            row = admin.execute(
                "select count(*) from pg_stat_activity where usename in ('slow', 'other')"
            ).fetchone()
            return int(str((row or (0,))[0]))

        wait_until(lambda: connections() == OF_READERS, connections)
        for number in range(24):
            writer = open_sessions.enter_context(
                connect(f"tds://writer@{crowded.host}:{crowded.port}", crowded.writer.password)
            )
            time = f"2026-05-06 07:08:{number:02}"
            assert call(writer, "put_sr_rf", 1, time, 1.5, number).status == 0
        # those that others waited for have ended
        assert connections() <= OF_READERS


def test_sessions_of_a_login_have_a_limit(crowded: RunningServer) -> None:
    def limit(sessions: str) -> None:
        done = ringlog("user", "limit", LIMITED.user, "--sessions", sessions, "--data", crowded.data)
        assert done.returncode == 0, done.stderr

    limit("2")
    try:
        assert "2 sessions" in ringlog("user", "list", "--data", crowded.data).stdout
        with session(crowded, LIMITED), session(crowded, LIMITED):
            with RawClient(crowded.host, crowded.port) as client:
                refused = client.log_in7(LIMITED)
            assert "as many sessions as it may have".encode("utf-16-le") in refused
            with session(crowded, SLOW):
                pass

        def is_let_in() -> bool:
            with RawClient(crowded.host, crowded.port) as client:
                return b"\xad" in client.log_in7(LIMITED)

        wait_until(is_let_in)
    finally:
        limit("none")


@contextmanager
def guessing(server: RunningServer, user: str) -> Iterator[list[int]]:
    """Continuous wrong passwords, under names derived from this one; the block gets a list of all so far."""
    tried: list[int] = []
    end = threading.Event()

    def guess(number: int) -> None:
        while not end.is_set():
            with suppress(EOFError, ConnectionError), RawClient(server.host, server.port) as client:
                client.log_in7(Login(user.format(len(tried)), "wrong"))
            tried.append(number)

    with ThreadPoolExecutor(24) as threads:
        for number in range(24):
            threads.submit(guess, number)
        try:
            yield tried
        finally:
            end.set()


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(OTHER.user, id="one name"),
        pytest.param("guess {}", id="changing names", marks=pytest.mark.long),
    ],
)
def test_wrong_passwords_do_not_block_a_correct_one(crowded: RunningServer, user: str) -> None:
    """From the same address: a login that succeeded before, and during guesses of names also a new one."""
    with session(crowded, OTHER):
        pass
    with guessing(crowded, user) as tried:
        wait_until(lambda: len(tried) > 250 or (user == OTHER.user and len(tried) > 60))
        for _ in range(20):
            before = len(tried)
            with session(crowded, OTHER), session(crowded, NEW):
                pass
            wait_until(lambda before=before: len(tried) > before)  # type: ignore[misc]
