"""Writers beside a hundred readers over HTTP: the cost of the readers for the writers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringlog.loadtest.experiment.facility import Tables
from ringlog_lab.bench.over_http import got, path, reading, web
from ringlog_lab.native_load import TDS74, Load, Measurement, Stand

READERS = 100
FORM = "csv"
RATE = 5.0
"""calls a second of each writer"""
PART = "http"


@dataclass(frozen=True)
class BesideHttp:
    """Writers measured beside so many readers."""

    readers: int
    writing: Measurement
    requests: int
    """requests answered meanwhile"""
    refused: int
    memory: int
    """resident bytes of the process that serves, at most"""


def measure_beside_http(
    stand: Stand,
    tables: Tables,
    log: Tables,
    *,
    connections: int,
    seconds: float,
    rounds: int,
    doing: Callable[[str], None],
) -> Iterator[BesideHttp]:
    """`connections` writers at RATE each, alone and beside READERS clients that request a signal of `log` in
    FORM repeatedly, alternating."""
    asked = path(FORM, log)
    with web(stand.server) as (process, port):
        size = got(port, asked)
        for round in range(rounds):
            for readers in (0, READERS):
                doing(f"writers beside {readers} readers")
                load = Load(TDS74, tables, connections, seconds, rate=RATE)
                with reading(process, port, asked, size, readers) as found:
                    writing = stand.run(load, PART, round)
                yield BesideHttp(readers, writing, found.requests, found.refused, found.memory)
