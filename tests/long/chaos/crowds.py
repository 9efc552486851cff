"""Harmful clients: slow ones, many that read nothing, and wrong passwords."""

import struct
import time
from contextlib import ExitStack, suppress
from typing import Any

import pymssql

import raw_tds
from chaos.writers import ERRORS
from raw_client import RawClient
from raw_tds import BATCH7
from servers import Login

_PACKET = 32_000


def slow_requests(site: Any, sessions: int, length: int, seconds: float) -> None:
    """Clients that stop in the middle of a request of this many bytes."""
    header = struct.pack(">BBHHBB", BATCH7, 0, _PACKET + 8, 0, 1, 0)
    with ExitStack() as opened, suppress(OSError, EOFError, AssertionError):
        for _ in range(sessions):
            client = _session(site, opened)
            client.socket.settimeout(1)
            with suppress(TimeoutError):
                client.socket.sendall((header + bytes(_PACKET)) * (length // _PACKET + 1) + header)
        time.sleep(seconds)


def unread_results(site: Any, sessions: int, seconds: float) -> None:
    """Readers that do not read their results."""
    with ExitStack() as opened, suppress(OSError, EOFError, AssertionError):
        for _ in range(sessions):
            client = _session(site, opened)
            client.send(BATCH7, raw_tds.batch7("select * from generate_series(1, 10000000)"))
        time.sleep(seconds)


def wrong_passwords(site: Any, seconds: float) -> None:
    """Wrong passwords under the writers' own name."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(*ERRORS):
            pymssql.connect(
                server="127.0.0.1",
                port=str(site.server.port),
                user=site.login.user,
                password="wrong",
                login_timeout=5,
            ).close()


def _session(site: Any, opened: ExitStack) -> RawClient:
    client = opened.enter_context(RawClient("127.0.0.1", site.server.port, timeout=20))
    login = Login(site.reader.user, site.reader.password)
    assert b"\xad" in client.log_in7(login, packet_size=_PACKET)
    return client
