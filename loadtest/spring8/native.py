"""The native load, by the ct-library client of ../native, which uses very little CPU.

It writes `real` columns only, so it has separate tables of the same widths as the facility's. As in
papers/004 one process writes one table; with many more writers, one process has all of them.
"""

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.native import command
from ringlog.loadtest.experiment.server import Server, log_rows
from ringlog.loadtest.experiment.verification import verify
from ringlog.loadtest.spring8.results import Check
from ringlog.schema.facility import Facility
from ringlog.schema.sql_files import sql_file

# Seconds of writing before the load begins, so that all groups write when the first is measured.
WARM = 2.0
# Equal to a group's own timeout: see ../native/load_generator.c.
_PATIENCE = 120.0


def twins(facility: Facility) -> list[Tables]:
    """For each table of the facility one of real columns, as wide."""
    return [
        Tables(f"twin{number}_", 1, len(table.columns)) for number, table in enumerate(facility.tables, 1)
    ]


@dataclass(frozen=True)
class Group:
    """The figures of one process, for its table or tables."""

    tables: Tables
    connections: int
    calls: int
    acknowledged: int
    """warming up included"""
    seconds: float
    p50: float
    p99: float
    longest: float
    by_second: list[list[float]]

    @property
    def rows(self) -> float:
        """Rows a second."""
        return self.calls / self.seconds

    @property
    def mean(self) -> float:
        """Seconds a row: each connection has one call outstanding at any time."""
        return self.connections * self.seconds / self.calls


class Natives:
    """Running native clients, a process for each table or group of tables."""

    def __init__(
        self, processes: Mapping[Tables, subprocess.Popen[str]], connections: Mapping[Tables, int]
    ) -> None:
        self._processes = processes
        self._connections = connections
        self._began = {tables: threading.Event() for tables in processes}
        self._results: dict[Tables, dict[str, Any]] = {}
        self._output: dict[Tables, str] = {}
        self._threads = [
            threading.Thread(target=self._listen, args=(tables, process))
            for tables, process in processes.items()
        ]
        for thread in self._threads:
            thread.start()
        self.processes = [psutil.Process(process.pid) for process in processes.values()]

    def _listen(self, tables: Tables, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                self._results[tables] = json.loads(line)
            elif line.startswith("begin"):
                self._began[tables].set()
        self._output[tables] = process.stderr.read().strip()
        self._began[tables].set()

    def wait_for_begin(self, seconds: float) -> None:
        """Waits until all of them are measured. Raises LoadTestError when one has failed."""
        for tables, began in self._began.items():
            if not began.wait(seconds):
                raise LoadTestError(
                    f"the native writers of {tables.prefix}0 … did not begin in {seconds:g} s"
                )
            self._complain(tables)

    def groups(self) -> list[Group]:
        """Their figures, after all have ended. Raises LoadTestError when a call failed."""
        for thread in self._threads:
            thread.join(_PATIENCE)
        found = []
        for tables in self._processes:
            self._complain(tables)
            if tables not in self._results:
                raise LoadTestError(f"the native writers of {tables.prefix}0 … did not end")
            one = self._results[tables]
            found.append(
                Group(
                    tables,
                    self._connections[tables],
                    one["calls"],
                    one["acknowledged"],
                    one["seconds"],
                    one["p50"],
                    one["p99"],
                    one["max"],
                    one["by_second"],
                )
            )
        return found

    def _complain(self, tables: Tables) -> None:
        if tables in self._output and tables not in self._results:
            raise LoadTestError(f"native writers: {self._output[tables] or 'ended without a result'}")


@contextmanager
def natives(
    programs: Path,
    server: Server,
    connections: Mapping[Tables, int],
    seconds: float,
    written: Mapping[Tables, int],
) -> Iterator[Natives]:
    """Native writers, so many in each process; `written` has the rows of the tables so far."""
    processes: dict[Tables, subprocess.Popen[str]] = {}
    try:
        for tables, count in connections.items():
            first = written.get(tables, 0) // tables.count
            writer = command(
                programs / "tdsload", server.port, tables, count, seconds, first, version="5.0", warm=WARM
            )
            process = subprocess.Popen(
                writer, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            processes[tables] = process
            assert process.stdin is not None
            process.stdin.write(f"{server.password}\n")
            process.stdin.close()
        yield Natives(processes, connections)
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()


_FOUND = sql_file(__file__, "native_found")


def check(server: Server, before: Mapping[Tables, int], acknowledged: Mapping[Tables, int]) -> Check:
    """Whether the logs have every acknowledged row besides those of `before`, the rings the latest of each
    seq_no, and the values are those that were sent (a sample of them)."""
    in_logs = stale = 0
    for tables in acknowledged:
        for name in tables.names:
            rows, filled, latest = count_rows(server.administrator, name)
            in_logs += rows
            stale += filled - latest
        in_logs -= before.get(tables, 0)
    expected = sum(acknowledged.values())
    altered = 0
    if in_logs == expected:
        try:
            verify(server, {tables: rows + before.get(tables, 0) for tables, rows in acknowledged.items()})
        except LoadTestError:
            altered = 1
    return Check.of_every_row(expected, in_logs, stale, altered)


def logged(server: Server, tables: Tables) -> int:
    """The number of rows in the logs of some tables."""
    return sum(log_rows(server.administrator, name) for name in tables.names)


def count_rows(connection: psycopg.Connection, table: str) -> Sequence[int]:
    """Rows of a table's log; filled rows of its ring; those of them that are the latest of their seq_no."""
    query = sql.SQL(_FOUND).format(log=sql.Identifier("log", table), ring=sql.Identifier("online", table))
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
