"""Samples a server under load: CPU of its parts, load average, I/O of PostgreSQL."""

import csv
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import psutil
import psycopg

from ringlog.loadtest.experiment.machine import load_average
from ringlog.loadtest.spring8.results import Sample
from ringlog.loadtest.spring8.target import Target
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

# Seconds between samples at first, and how many are kept: from then on every other one.
_INTERVAL = 1.0
_MOST = 3600

# Since PostgreSQL 18 pg_stat_io knows the write-ahead log. WAL files made ahead (context init) are left out:
# a server that has run for a while uses its files again.
_IO_SINCE = 180000
_IO = sql_file(__file__, "sampling_io")


class Sampler:
    """Takes samples of a target and of the processes that load it."""

    def __init__(self, target: Target, clients: Sequence[psutil.Process]) -> None:
        self._target = target
        self._clients = clients
        self._connection = session.connect(target.conninfo, autocommit=True)
        self._begun = 0.0
        self._first: Sample | None = None
        self.samples: list[Sample] = []
        self.interval = _INTERVAL
        """the time between two samples, in seconds"""

    def begin(self) -> None:
        """The load begins now: everything counts from here."""
        self._begun = time.monotonic()
        self._first = None
        self.samples = [self.take()]

    @property
    def seconds(self) -> float:
        """How long the load has lasted."""
        return time.monotonic() - self._begun

    def add(self) -> None:
        """Takes a sample and keeps it."""
        self.samples.append(self.take())
        if len(self.samples) > _MOST:
            del self.samples[1::2]
            self.interval *= 2

    def checkpoint(self) -> bool:
        """Requests a checkpoint of PostgreSQL; False without the right to do so."""
        try:
            self._connection.execute("checkpoint")
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True

    def take(self) -> Sample:
        """Figures of this moment."""
        machine = psutil.cpu_times()
        spent = processor_seconds()
        server = self._target.server
        wal_bytes, wal_operations, table_bytes, table_operations = self._io()
        now = Sample(
            seconds=self.seconds,
            load_average=load_average(),
            machine=machine.user + machine.nice + machine.system + machine.irq + machine.softirq,
            postgres=spent.family(server.postmaster.pid) if server else None,
            gateway=spent.alone(server.gateway.pid) if server else None,
            clients=sum(spent.family(client.pid) for client in self._clients),
            wal_bytes=wal_bytes,
            wal_operations=wal_operations,
            table_bytes=table_bytes,
            table_operations=table_operations,
        )
        if self._first is None:
            self._first = now
        return _since(self._first, now)

    def _io(self) -> tuple[int | None, int | None, int | None, int | None]:
        if self._connection.info.server_version < _IO_SINCE:
            return None, None, None, None
        row = self._connection.execute(_IO).fetchone()
        assert row is not None
        wal_bytes, wal_operations, table_bytes, table_operations = (int(one or 0) for one in row)
        return wal_bytes, wal_operations, table_bytes, table_operations

    def close(self) -> None:
        self._connection.close()


def _since(first: Sample, now: Sample) -> Sample:
    """`now` with its counts from `first` on."""
    counted = {
        each.name: getattr(now, each.name) - getattr(first, each.name)
        for each in fields(Sample)
        if each.name not in ("seconds", "load_average") and getattr(now, each.name) is not None
    }
    return replace(now, **counted)


@dataclass
class Spent:
    """CPU of all processes of this machine, from one pass over /proc: psutil would read each several times,
    which is expensive for thousands of PostgreSQL processes."""

    own: dict[int, float] = field(default_factory=dict)
    """seconds, by process"""
    of_ended_children: dict[int, float] = field(default_factory=dict)
    children: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def alone(self, process: int) -> float:
        """Seconds of one process; 0 when it has ended."""
        return self.own.get(process, 0.0)

    def family(self, process: int) -> float:
        """Seconds of a process and its children, also of those that have ended."""
        children = sum(self.alone(child) for child in self.children.get(process, ()))
        return self.alone(process) + self.of_ended_children.get(process, 0.0) + children


def processor_seconds() -> Spent:
    """Reads /proc: see proc_pid_stat(5)."""
    tick = os.sysconf("SC_CLK_TCK")
    spent = Spent()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # after the program's name, which may have blanks and parentheses: state, parent, ...
                fields = file.read().rpartition(b")")[2].split()
                user, system, users, systems = (int(field) / tick for field in fields[11:15])
                spent.own[int(name)] = user + system
                spent.of_ended_children[int(name)] = users + systems
                spent.children[int(fields[1])].append(int(name))
    return spent


def write_csv(samples: Sequence[Sample], file: Path) -> None:
    """The samples, one a line."""
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, [each.name for each in fields(Sample)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(sample) for sample in samples)
