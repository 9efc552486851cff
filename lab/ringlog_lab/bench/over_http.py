"""Clients that read over HTTP at the same time."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

import psutil

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import READER, Server


@dataclass
class Received:
    """The amount that clients have received so far."""

    requests: int = 0
    refused: int = 0
    memory: int = 0
    """resident bytes of the process that serves, at most"""


@contextmanager
def reading(
    process: psutil.Process, port: int, asked: str, size: int, clients: int, tolerance: int = 0
) -> Iterator[Received]:
    """So many clients that repeatedly request an answer of `size` ± `tolerance` bytes, until the end and
    their last answers. Raises LoadTestError for any other answer.
    """
    found, lock, end = Received(), threading.Lock(), threading.Event()
    failures: list[LoadTestError] = []

    def work() -> None:
        while not end.is_set() and not failures:
            try:
                length = got(port, asked)
            except LoadTestError as error:
                failures.append(error)
                return
            with lock:
                if length < 0:
                    found.refused += 1
                elif abs(length - size) > tolerance:
                    failures.append(LoadTestError(f"{asked}: {length} bytes instead of {size}"))
                else:
                    found.requests += 1

    def watch() -> None:
        while any(thread.is_alive() for thread in threads):
            found.memory = max(found.memory, process.memory_info().rss)
            time.sleep(0.05)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        end.set()
    # after an error do not wait for answers: the clients end with the server
    for thread in (*threads, watching):
        thread.join()
    if failures:
        raise failures[0]


def got(port: int, asked: str) -> int:
    """Bytes of an answer; -1 if the server reports that it is too busy."""
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request("GET", asked)
        answer = connection.getresponse()
        size, buffer = 0, bytearray(1 << 20)
        while count := answer.readinto(buffer):
            size += count
    except (OSError, HTTPException) as error:
        raise LoadTestError(f"{asked}: {error}") from None
    finally:
        connection.close()
    if answer.status == 429:
        return -1
    if answer.status != 200:
        raise LoadTestError(f"{asked}: {answer.status} {bytes(buffer[:200]).decode(errors='replace')}")
    return size


@contextmanager
def web(server: Server) -> Iterator[tuple[psutil.Process, int]]:
    """`ringlog web`, open to all clients with the reader's rights."""
    command = [sys.executable, "-P", "-m", "ringlog", "web", "--http", "127.0.0.1:0", "--http-role", READER]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
        env=os.environ | {"RINGLOG_DSN": server.conninfo(READER)},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("HTTP on "):
                raise LoadTestError(f"ringlog web did not start: {line.strip() or 'it says nothing'}")
            [serving] = psutil.Process(process.pid).children()
            yield serving, int(line.strip().rpartition(":")[2])
        finally:
            process.terminate()
