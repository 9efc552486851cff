"""Writers while others read: the cost of a reader that streams rows for the writers, through the gateway and
direct."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import READER, Server
from ringlog_lab.bench.asking import asking
from ringlog_lab.bench.reader import Options, Received, queries
from ringlog_lab.native_load import DIRECT, TDS74, Contender, Load, Measurement, Stand

READERS = (0, 4, 16, 64)
NICE = (0, 19)
CONTENDERS = (DIRECT, TDS74)
"""of writers; their readers use the same ways, psycopg and pymssql"""
RATE = 50.0
"""calls a second of the single writer"""
_PROCESSES = 4  # more readers share the processes


@dataclass(frozen=True)
class Mixed:
    """Writers measured while others read."""

    readers: int
    nice: int
    """of the readers' processes"""
    writing: Measurement | None
    """None: readers alone"""
    rows: int
    """rows read meanwhile"""
    seconds: float
    longest: float
    """the longest that a reader waited for rows, in seconds"""

    @property
    def rate(self) -> float:
        """Rows read in a second."""
        return self.rows / self.seconds


def kinds(readers: int) -> list[str]:
    """The query of each reader: wide rows for few readers, all kinds for more."""
    order = ("wide",) if readers <= 4 else ("wide", "signal", "aggregate", "wide")
    return [order[number % len(order)] for number in range(readers)]


def measure_mixed(
    stand: Stand,
    tables: Tables,
    log: Tables,
    *,
    connections: int,
    seconds: float,
    rounds: int,
    readers: Sequence[int],
    doing: Callable[[str], None],
) -> Iterator[tuple[str, Mixed]]:
    """Each contender with each number of readers, alternating; they read `log`. Yields contender and
    figures: of `connections` writers at full rate, of a single one at RATE, and of the readers alone."""
    for round in range(rounds):
        for count in readers:
            for nice in NICE if count else NICE[:1]:
                for place in range(len(CONTENDERS)):
                    one = CONTENDERS[(place + round) % len(CONTENDERS)]
                    doing(f"{one.title}, {count} readers, nice {nice}")
                    with reading(stand.server, one, log, count, nice) as take:
                        if count:
                            time.sleep(seconds)
                            yield one.key, Mixed(count, nice, None, *take())
                        for callers, rate in ((connections, 0.0), (1, RATE)):
                            load = Load(one, tables, callers, seconds, rate=rate)
                            part = "mixed" if rate == 0.0 else "mixed lone"
                            take()
                            writing = stand.run(load, part, round)
                            yield one.key, Mixed(count, nice, writing, *take())


@contextmanager
def reading(
    server: Server, contender: Contender, log: Tables, count: int, nice: int
) -> Iterator[Callable[[], tuple[int, float, float]]]:
    """So many readers of a log, in processes of their own.

    Yields a function that returns rows, seconds and the longest wait since its last call.
    """
    path = "tds" if contender.version else "psycopg"
    chosen = queries(path, log.names[0], log.column_names[0], kinds(count))
    processes = min(_PROCESSES, count)
    with ExitStack() as stack:
        groups = [
            stack.enter_context(_process(server, path, chosen[number::processes], nice))
            for number in range(processes)
        ]
        since = time.monotonic()

        def take() -> tuple[int, float, float]:
            nonlocal since
            found = [group() for group in groups]
            now = time.monotonic()
            began, since = since, now
            rows = sum(each.rows for each in found)
            return rows, now - began, max((each.longest for each in found), default=0.0)

        yield take


@contextmanager
def _process(server: Server, path: str, chosen: Sequence[str], nice: int) -> Iterator[Callable[[], Received]]:
    options = Options(
        path=path,
        host=server.host if path == "tds" else "127.0.0.1",
        port=server.port if path == "tds" else server.postgres_port,
        database=server.administrator.info.dbname,
        user=READER,
        queries=chosen,
    )
    command = ["nice", "-n", str(nice), sys.executable, "-m", "ringlog_lab.bench.reader"]
    command.append(json.dumps(asdict(options)))
    with asking(command, server.password, f"a reader by {path}", own_session=True) as answer:
        yield lambda: Received(**json.loads(answer("found")))
