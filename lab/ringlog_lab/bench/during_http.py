"""Writers while a hundred clients read over HTTP: the cost of the readers for the writers."""

from collections.abc import Callable, Iterator

from ringlog.loadtest.experiment.facility import Tables
from ringlog_lab.bench.over_http import got, path, reading, web
from ringlog_lab.native_load import TDS74, Load, Stand
from ringlog_lab.record import Disturbed

READERS = 100
FORM = "csv"
RATE = 5.0
"""calls a second of each writer"""
PART = "http"


def measure_during_http(
    stand: Stand,
    tables: Tables,
    log: Tables,
    *,
    connections: int,
    seconds: float,
    rounds: int,
    doing: Callable[[str], None],
) -> Iterator[Disturbed]:
    """`connections` writers at RATE each, in turns alone and while READERS clients read a signal in FORM."""
    asked = path(FORM, log)
    with web(stand.server) as (process, port):
        size = got(port, asked)
        for round in range(rounds):
            for readers in (0, READERS):
                doing(f"writers and {readers} readers")
                load = Load(TDS74, tables, connections, seconds, rate=RATE)
                with reading(process, port, asked, size, readers) as found:
                    writing = stand.run(load, PART, round)
                yield Disturbed(PART, readers, writing, found.requests, found.memory)
