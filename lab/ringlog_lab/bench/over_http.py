"""Reading a log over HTTP by 1, 10 and 100 clients at once, in each form: papers/003, table 3."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables, frames
from ringlog.loadtest.experiment.server import READER, Server
from ringlog_lab.bench.reading import settle

CLIENTS = (1, 10, 100)
FORMS = {
    "csv": "/retrieval/data/getData.csv",
    "json": "/retrieval/data/getData.json",
    "raw": "/retrieval/data/getData.raw",
    "arrow": "/api/v1/data",
    "rows": "/api/v1/rows",
}
"""The first four return one signal, `rows` all columns of the table as Arrow."""
OF_WAVEFORMS = {f"waveforms, {form}": FORMS[form] for form in ("csv", "json", "raw", "arrow")}
"""Each returns the waveforms of `frames`."""


@dataclass(frozen=True)
class Fetching:
    """The amount that a number of clients received in a form, one request after the other."""

    form: str
    clients: int
    requests: int
    values: int
    bytes: int
    seconds: float
    memory: int
    """resident bytes of the process that serves, at most"""
    refused: int

    @property
    def rate(self) -> float:
        """Values a second."""
        return self.values / self.seconds

    @property
    def speed(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds


def fetch(server: Server, tables: Tables, rows: int, seconds: float) -> Iterator[Fetching]:
    """Each form by each number of clients, for these seconds: a log with `rows` rows, and waveforms with ten
    times as many points in all.
    """
    waveforms = max(1, 10 * rows // frames().points)
    _fill_frames(server, waveforms)
    with web(server) as (process, port):
        for form in FORMS:
            values = rows * (tables.columns if form == "rows" else 1)
            for clients in CLIENTS:
                yield _measured(process, port, form, tables, values, clients, seconds)
        for form in OF_WAVEFORMS:
            for clients in CLIENTS:
                values = waveforms * frames().points
                yield _measured(process, port, form, frames(), values, clients, seconds)


def _fill_frames(server: Server, rows: int) -> None:
    """Fills the log of `frames` with a number of waveforms, a second apart; the last is an hour old."""
    (table,) = frames().names
    statement = sql.SQL(
        "insert into {log} (seq_no, time, {column}) select 1 + n % {ring},"
        " date_trunc('hour', now()) - interval '1 hour' - n * interval '1 s',"
        " array(select 1000 * random() + 0 * n from generate_series(1, {points}))"
        " from generate_series(0, {rows} - 1) as n"
    ).format(
        log=sql.Identifier("log", table),
        column=sql.Identifier(*frames().column_names),
        ring=sql.Literal(frames().rows),
        points=sql.Literal(frames().points),
        rows=sql.Literal(rows),
    )
    server.administrator.execute(statement)
    server.administrator.execute(sql.SQL("vacuum analyze {}").format(sql.Identifier("log", table)))
    settle(server.administrator, table)


def path(form: str, tables: Tables) -> str:
    """The path of a request for all rows of the log that was filled."""
    table, column = tables.names[0], tables.column_names[0]
    asked = {"from": "now-14d", "to": "now"}
    if form.endswith("arrow"):
        asked |= {"signal": f"{table}/{column}", "format": "arrow"}
    elif form == "rows":
        asked |= {"table": table, "format": "arrow"}
    else:
        asked |= {"pv": f"{table}/{column}"}
    return f"{(FORMS | OF_WAVEFORMS)[form]}?{urlencode(asked)}"


def _measured(
    process: psutil.Process,
    port: int,
    form: str,
    tables: Tables,
    values: int,
    clients: int,
    seconds: float,
) -> Fetching:
    asked = path(form, tables)
    size = got(port, asked)  # the first one makes connections to PostgreSQL
    began = time.monotonic()
    with reading(process, port, asked, size, clients) as found:
        time.sleep(seconds)
    took = time.monotonic() - began
    return Fetching(
        form,
        clients,
        found.requests,
        found.requests * values,
        found.requests * size,
        took,
        found.memory,
        found.refused,
    )


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
