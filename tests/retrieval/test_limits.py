"""Queries are limited in number, time and size, and a client that disconnects ends its own."""

import asyncio
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx
import psutil
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from starlette.types import Message
from webs import Web

from ringlog.history.connection import rows
from ringlog.retrieval.samples import demand_few
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.access import Access
from ringlog.retrieval.serving.application import application
from ringlog.retrieval.serving.limits import Limits
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.protocol import MOST_WAITING_OF_ADDRESS
from ringlog.retrieval.serving.queries import Queries
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.serving.server import listen
from ringlog.retrieval.serving.settings import LoginServer
from ringlog.retrieval.signals import demand
from servers import free_port, serving
from waiting import wait_until

MiB = 2**20


@contextmanager
def queries(web, **limits: float) -> Iterator[tuple[Queries, Access]]:
    made = Limits(**limits)
    database = make_conninfo("", host="127.0.0.1", port=web.server.postgres_port, dbname="ringlog")
    yield Queries(made), Access(LoginServer(database, web.server.dsn_of(web.server.reader)), made.seconds)


def sleeping(seconds: float) -> Callable[..., Iterator[bytes]]:
    """A query of this duration, which can be distinguished from others."""

    def work(servers: Servers) -> Iterator[bytes]:
        text = sql.SQL("select pg_sleep({})::text as slept, 'a query of test_limits' as mark")
        for _ in rows(servers.first, text.format(sql.Literal(seconds))):
            yield b"slept"

    return work


def running(web) -> int:
    found = web.server.sql(
        "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()"
        " and query like '%a query of test_limits%'"
    )[0]
    assert found is not None
    return int(found[0])


async def ignore(_: Sequence[Part], more: bool) -> None:
    pass


def test_a_query_that_takes_too_long_is_504(web) -> None:
    with queries(web, seconds=0.5) as (some, access):

        async def ask() -> None:
            await some.run(access.login(None), sleeping(60), ignore)

        with pytest.raises(Refused) as refusal:
            anyio.run(ask)
    assert refusal.value.status == 504


def test_an_error_in_the_middle_of_a_result_is_reported(web) -> None:
    def work(servers: Servers) -> Iterator[bytes]:
        # the driver has no SQLSTATE for it
        for _ in rows(servers.first, sql.SQL("select 1 / (n - 9) from generate_series(1, 10) as n")):
            yield b"never"

    with queries(web) as (some, access):

        async def ask() -> None:
            await some.run(access.login(None), work, ignore)

        with pytest.raises(Refused, match="PostgreSQL refused the query: division by zero") as refusal:
            anyio.run(ask)
    assert refusal.value.status == 500


def test_a_query_without_a_turn_is_429(web) -> None:
    with queries(web, queries=1, patience=0.5) as (some, access):
        statuses = []
        refused = threading.Event()

        def until_the_other_is_refused(servers: Servers) -> Iterator[bytes]:
            refused.wait(60)
            yield b"had a turn"

        async def ask() -> None:
            try:
                await some.run(access.login(None), until_the_other_is_refused, ignore)
                statuses.append(200)
            except Refused as refusal:
                statuses.append(refusal.status)
                refused.set()

        async def twice() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)

        anyio.run(twice)
    assert sorted(statuses) == [200, 429]


def test_a_cancelled_query_ends_in_postgresql(web) -> None:
    with queries(web) as (some, access):

        async def ask() -> None:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:

                    async def cancel() -> None:
                        await anyio.to_thread.run_sync(lambda: wait_until(lambda: running(web) == 1))
                        scope.cancel()

                    tasks.start_soon(cancel)
                    await some.run(access.login(None), sleeping(600), ignore)

        anyio.run(ask)
        # long before its end
        wait_until(lambda: running(web) == 0)


def test_a_cancellation_between_two_queries_ends_the_second(web, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled = threading.Event(), threading.Event()
    cancel = Servers.cancel
    monkeypatch.setattr(Servers, "cancel", lambda servers: (cancel(servers), cancelled.set()))

    def work(servers: Servers) -> Iterator[bytes]:
        begun.set()
        cancelled.wait(60)
        yield from sleeping(600)(servers)

    with queries(web) as (some, access):

        async def ask() -> None:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(some.run, access.login(None), work, ignore)
                    await anyio.to_thread.run_sync(begun.wait)
                    scope.cancel()

        began = time.monotonic()
        anyio.run(ask)
        assert time.monotonic() - began < 100


def test_a_client_that_disconnects_ends_its_query(web) -> None:
    """The answer is so large that it cannot have been sent completely."""
    web.server.sql(
        "insert into log.sr_rf (seq_no, time, power) select 1, timestamptz '2024-03-01 00:00+00'"
        " + n * interval '1 second', n from generate_series(1, 400000) n on conflict do nothing"
    )
    parameters = {"pv": "sr_rf/power", "from": "2024-02-29T00:00:00Z", "to": "2024-04-01T00:00:00Z"}
    seen = "select count(*) from pg_stat_activity where state = 'active' and query like '%sr_rf%2024%'"
    seen += " and application_name = 'ringlog web'"
    with (
        web.client() as client,
        client.stream("GET", "/retrieval/data/getData.json", params=parameters) as answer,
    ):
        assert answer.status_code == 200
        next(answer.iter_raw(1000))

    def none_left() -> bool:
        return web.server.sql(seen)[0] == (0,)

    wait_until(none_left)
    with web.client() as client:
        assert client.get("/api/v1/me").status_code == 200
    # tests of other files require this table without rows
    web.server.sql("truncate weeks.sr_rf")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_end_of_an_answer_does_not_wait_for_an_acknowledgement(host: str) -> None:
    """asyncio sends small writes at once if a connection names its protocol."""

    async def connected() -> int:
        server = await asyncio.start_server(accepted, sock=listen(host, 0))
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            answer = await reader.read()
            writer.close()
        return int(answer)

    async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        writer.write(b"%d" % connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    assert asyncio.run(connected()) == 1


def test_too_many_signals_are_413(anyone: httpx.Client) -> None:
    answer = anyone.get("/api/v1/latest", params={"signal": [f"s{number}" for number in range(501)]})
    assert answer.status_code == 413


def test_too_long_a_body_is_413(anyone: httpx.Client) -> None:
    answer = anyone.post("/retrieval/bpl/filterArchivedPVs", content=b" " * (2 << 20))
    assert answer.status_code == 413


def test_too_many_samples_are_413(web) -> None:
    with queries(web) as (some, access), Servers(some.connections, access.login(None)) as servers:
        signals = demand(servers, ["every_type/a_real"])
        begin, end = datetime(2025, 12, 31, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
        demand_few(servers, signals, begin, end, 200)
        with pytest.raises(Refused) as refusal:
            demand_few(servers, signals, begin, end, 199)
    assert refusal.value.status == 413


def test_live_streams_have_their_limit_when_many_begin_at_once(web) -> None:
    database = make_conninfo("", host="127.0.0.1", port=web.server.postgres_port, dbname="ringlog")
    access = Access(LoginServer(database, web.server.dsn_of(web.server.reader)), 60.0)
    app = application(access, Limits(streams=2))
    scope = {"type": "http", "method": "GET", "path": "/api/v1/live", "headers": [], "http_version": "1.1"}
    scope |= {"query_string": b"signal=sr_rf/power", "client": ("127.0.0.1", 1), "server": ("x", 80)}
    statuses: list[int] = []

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def begin() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(app, dict(scope), receive, send)
            while len(statuses) < 6:
                await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()

    for _ in range(2):  # the streams that have ended do not count
        statuses.clear()
        anyio.run(begin)
        assert sorted(statuses) == [200] * 2 + [429] * 4


# --- clients that send or read slowly do not keep others from being served ---

CROWD = 2100


def connected(web: Web, stack: ExitStack, request: bytes, buffer: int = 0) -> socket.socket:
    host, port = web.url.removeprefix("http://").split(":")
    one = stack.enter_context(socket.socket())
    if buffer:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    one.settimeout(60)
    one.connect((host, int(port)))
    one.sendall(request)
    return one


def has_ended(one: socket.socket) -> bool:
    one.settimeout(100)
    with suppress(ConnectionError):
        while one.recv(4096):
            pass
    return True


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(usual, number), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


def test_heads_that_never_end_leave_connections_to_others(web: Web, anyone: httpx.Client) -> None:
    with descriptors(CROWD + 500), ExitStack() as stack:
        head = b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "
        silent = [connected(web, stack, head) for _ in range(CROWD)]
        assert anyone.get("/api/v1/me").status_code == 200
        # the oldest went for the newest
        for one in silent[: CROWD - MOST_WAITING_OF_ADDRESS]:
            assert has_ended(one)


@pytest.mark.long
@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nX-a: ",
        b"POST /retrieval/bpl/filterArchivedPVs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n[",
    ],
    ids=["head", "body"],
)
def test_a_request_that_never_ends_is_closed(web: Web, request_: bytes) -> None:
    """Its client sends a byte each second."""
    with ExitStack() as stack:
        one = connected(web, stack, request_)
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 100:
                one.sendall(b"a")
                time.sleep(1)
        assert time.monotonic() - began < 100
        assert has_ended(one)


@pytest.fixture
def large(web: Web) -> Iterator[str]:
    """The path of an answer that is longer than what is made ahead."""
    web.server.sql(
        "insert into log.sr_rf (seq_no, time, power) select 1, timestamptz '2024-03-01 00:00+00'"
        " + n * interval '1 second', n from generate_series(1, 400000) n on conflict do nothing"
    )
    yield "/retrieval/data/getData.json?pv=sr_rf/power&from=2024-02-29T00:00:00Z&to=2024-04-01T00:00:00Z"
    # tests of other files require this table without rows
    web.server.sql("truncate weeks.sr_rf")


def test_slow_readers_leave_slots_to_others(web: Web, anyone: httpx.Client, large: str) -> None:
    """Eight clients read nothing of an answer, and there are six slots."""
    with ExitStack() as stack:
        request = f"GET {large} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n".encode()
        slow = [connected(web, stack, request, 4096) for _ in range(8)]
        for one in slow[:4]:
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert anyone.get("/api/v1/signals").status_code == 200
        assert time.monotonic() - began < 30
        data = {"signal": "sr_rf/power", "from": "2024-03-01", "to": "2024-03-02", "limit": "10"}
        assert anyone.get("/api/v1/data", params=data).status_code == 200


LARGE = """
[[table]]
name = "scope"
rows = 10
cycle = 1.0

[[table.column]]
name = "trace"
signal = "scope/trace"
type = "double[]"
points = 10000
"""


@pytest.mark.long
def test_the_memory_of_large_answers_is_given_back(temporary_directory: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=temporary_directory))
    folder.chmod(0o755)
    facility, port = folder / "large.toml", free_port()
    facility.write_text(LARGE)
    options = ("--http", f"127.0.0.1:{port}", "--http-role", "reader")
    with serving(folder / "data", *options, facility=facility) as running:
        running.sql(
            "insert into weeks.scope select 1 + n % 10, now() - 2 * interval '1 hour' + n * interval '1 s',"
            " array(select random() from generate_series(1, 10000)) from generate_series(1, 1000) as n"
        )
        (process,) = (
            child
            for child in psutil.Process(running.process.pid).children()
            if "ringlog.server.processes.web_process" in child.cmdline()
        )
        now = datetime.now(UTC)
        asked = {
            "signal": "scope/trace",
            "from": (now - timedelta(hours=4)).isoformat(),
            "to": now.isoformat(),
        }
        url = f"http://127.0.0.1:{port}/api/v1/data"

        def read(_: int) -> int:
            size = 0
            parameters, headers = asked | {"format": "arrow"}, {"Accept-Encoding": "identity"}
            with httpx.stream("GET", url, params=parameters, headers=headers, timeout=600) as answer:
                assert answer.status_code == 200
                for part in answer.iter_raw():
                    size += len(part)
            return size

        with ThreadPoolExecutor(12) as readers:
            sizes = [*readers.map(read, range(24))]
        assert min(sizes) >= 1000 * 10_000 * 8
        kept = process.memory_info().rss
        assert kept > 220 * MiB
        wait_until(lambda: process.memory_info().rss < 0.75 * kept)
