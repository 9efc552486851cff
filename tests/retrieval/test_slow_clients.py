"""Clients that send or read slowly do not keep others from being served."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from webs import Web

from ringlog.retrieval.serving.protocol import MOST_WAITING_OF_ADDRESS

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
