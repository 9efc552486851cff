"""The retrieval study of papers/003, table 3: frames of one waveform over HTTP by 1, 10 and 100 threads."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.bench.over_http import got, reading, web
from ringlog_lab.ess.scenarios import Scenario
from ringlog_lab.stage import Used, watching

FORMS = ("csv", "json", "raw", "txt")
THREADS = (1, 10, 100)
_REQUEST = 2_000_000
"""Bytes of points in an answer, at most, unless one frame has more."""
_MINUTE = 60
_WARM = 32
"""Requests at once, at most, before anything is measured."""


@dataclass(frozen=True)
class Retrieved:
    """The amount that a number of threads received in a form, one request after another."""

    scenario: Scenario
    form: str
    threads: int
    frames: int
    """in each answer"""
    requests: int
    bytes: int
    refused: int
    """answers that the server is too busy"""
    used: Used
    client: float
    """cores that the threads took"""

    @property
    def rate(self) -> float:
        """Frames a second."""
        return self.requests * self.frames / self.used.seconds

    @property
    def megabytes(self) -> float:
        """Of answers a second."""
        return self.bytes / 1e6 / self.used.seconds

    @property
    def answer(self) -> float:
        """Seconds of an answer, on average."""
        return self.threads * self.used.seconds / max(1, self.requests)


def fill(server: Server, scenario: Scenario) -> int:
    """Makes frames of the scenario's only waveform, in the log as its writer would; returns how many."""
    frames = max(2, min(_MINUTE * scenario.rate, _REQUEST // scenario.frame))
    (table,) = scenario.tables
    log = sql.Identifier("weeks", table)
    server.administrator.execute(sql.SQL("truncate {}").format(log))
    kind = "integer" if scenario.type == "int" else "double precision"
    server.administrator.execute(
        sql.SQL(
            "insert into {log} (seq_no, time, wave_1) select 1 + n % 2, {begin}::timestamptz + n * "
            "{apart}::interval, array(select (case when p = 0 then n else floor(65536 * random()) - 32768 "
            "end)::{kind} from generate_series(0, {points} - 1) as p) from generate_series(0, {frames} - 1) "
            "as n"
        ).format(
            log=log,
            begin=sql.Literal(
                datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
            ),
            apart=sql.Literal(timedelta(seconds=1 / scenario.rate)),
            kind=sql.SQL(kind),
            points=sql.Literal(scenario.points),
            frames=sql.Literal(frames),
        )
    )
    return frames


def retrieve(
    server: Server, scenario: Scenario, forms: Sequence[str], threads: Sequence[int], seconds: float
) -> Iterator[Retrieved]:
    """Each form by each number of threads, for these seconds.

    Raises LoadTestError when an answer has another number of frames than the log.
    """
    frames = fill(server, scenario)
    with web(server) as (process, port):
        _warm(port, _path(scenario, forms[0]), min(_WARM, max(threads)))
        for form in forms:
            asked = _path(scenario, form)
            if form in ("csv", "txt"):
                _count(port, asked, frames + (form == "txt"))
            for number in threads:
                yield _measured(server, process, port, scenario, form, asked, frames, number, seconds)


def _warm(port: int, asked: str, threads: int) -> None:
    """Starts all connections and threads before a measurement: a short load would include their start."""
    running = [threading.Thread(target=got, args=(port, asked)) for _ in range(threads)]
    for one in running:
        one.start()
    for one in running:
        one.join()


def _path(scenario: Scenario, form: str) -> str:
    (table,) = scenario.tables
    asked = {"pv": scenario.signals(table)[0], "from": "now-3h", "to": "now"}
    return f"/retrieval/data/getData.{form}?{urlencode(asked)}"


def _count(port: int, asked: str, expected: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", asked)
        found = connection.getresponse().read().count(b"\n")
    except (OSError, HTTPException) as error:
        raise LoadTestError(f"{asked}: {error}") from None
    finally:
        connection.close()
    if found != expected:
        raise LoadTestError(f"{asked}: {found} lines instead of {expected}")


def _measured(
    server: Server,
    web: psutil.Process,
    port: int,
    scenario: Scenario,
    form: str,
    asked: str,
    frames: int,
    threads: int,
    seconds: float,
) -> Retrieved:
    size = got(port, asked)
    own = time.process_time()
    # the header of an answer may name another moment
    with watching(server, (), web) as used, reading(web, port, asked, size, threads, len(asked)) as found:
        time.sleep(seconds)
    client = (time.process_time() - own) / used[0].seconds
    return Retrieved(
        scenario, form, threads, frames, found.requests, found.requests * size, found.refused, used[0], client
    )
