"""Other servers as targets: started for a run, with their versions and settings."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from ringlog.loadtest.experiment.server import Server
from ringlog_lab.half.in_influxdb import InInfluxdb
from ringlog_lab.half.in_questdb import InQuestdb
from ringlog_lab.half.in_timescaledb import targets
from ringlog_lab.half.target import Target
from ringlog_lab.peers import finding, influxdb, questdb, timescaledb

Started: TypeAlias = tuple[Sequence[Target], str]


@contextmanager
def _timescaledb(programs: Path, server: Server, folder: Path, pvs: int) -> Iterator[Started]:
    with timescaledb.serving(programs, server, folder) as running:
        yield targets(running, pvs), running.version


@contextmanager
def _questdb(jar: Path, server: Server, folder: Path, pvs: int) -> Iterator[Started]:
    with questdb.serving(jar, server, folder) as running:
        yield [InQuestdb(running, pvs)], running.version


@contextmanager
def _influxdb(program: Path, server: Server, folder: Path, pvs: int) -> Iterator[Started]:
    with influxdb.serving(program, server, folder) as running:
        yield [InInfluxdb(running, pvs)], running.version


START: dict[str, Callable[[Path, Server, Path, int], AbstractContextManager[Started]]] = {
    finding.TIMESCALEDB: _timescaledb,
    finding.QUESTDB: _questdb,
    finding.INFLUXDB: _influxdb,
}
"""Starts a server by its name: its program, a server of ringlog, a folder for its data, the number of PVs."""
