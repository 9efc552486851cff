"""Many tables: the time of a server's start with them, and its memory."""

import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from ringlog.loadtest.experiment.facility import many_tables, write_facility
from ringlog.loadtest.experiment.server import Server, serving
from ringlog_lab.record import Figure

_ASKED = 20
"""number of calls of a procedure"""


def measure_many_tables(folder: Path, count: int, doing: Callable[[str], None]) -> Iterator[Figure]:
    """Makes this number of tables in a separate server, which is then restarted."""
    tables = many_tables(count)
    facility, data = folder / "many.toml", folder / "many"
    write_facility(facility, [tables])
    doing(f"making {count} tables")
    with serving(facility, data, keep=True) as server:
        yield from _starting("first start", server)
        password = server.password
    doing("starting again")
    with serving(facility, data, keep=True, password=password) as server:
        yield from _starting("starting again", server)
        with urllib.request.urlopen(server.metrics) as answer:
            yield Figure("/metrics", len(answer.read()) / 1e6, "MB")
        doing("asking for columns")
        with closing(server.by_pymssql()) as connection, connection.cursor() as cursor:
            took = []
            for number in range(_ASKED):
                began = time.perf_counter()
                cursor.execute(f"exec sp_columns {tables.names[number % count]}")
                assert len(cursor.fetchall()) == tables.columns + 2
                took.append(time.perf_counter() - began)
            yield Figure("sp_columns, the first time", 1e3 * took[0], "ms")
            yield Figure("sp_columns", 1e3 * median(took), "ms")


def _starting(what: str, server: Server) -> Iterator[Figure]:
    begun = server.begun
    yield Figure(f"{what}, CPU of the gateway's process", begun.gateway, "s")
    yield Figure(f"{what}, CPU of PostgreSQL", begun.postgres, "s")
    yield Figure(f"{what}, memory of the gateway's process", begun.memory / 1e6, "MB")
