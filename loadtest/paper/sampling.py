"""Looks at a server under load again and again: CPU of its parts, load average, I/O of PostgreSQL."""

import csv
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path

import psutil
import psycopg

from ringlog.loadtest.paper.machine import load_average
from ringlog.loadtest.paper.results import Sample
from ringlog.loadtest.paper.site import Site

# Not more samples than these, however long the load.
_MOST = 3600
_SHORTEST = 1.0

# Since PostgreSQL 18 pg_stat_io knows the write-ahead log. WAL files made ahead (context init) are left out:
# a server that has run for a while uses its files again.
_IO_SINCE = 180000
_IO = """
select
  sum(write_bytes) filter (where object = 'wal' and context = 'normal'),
  sum(writes) filter (where object = 'wal' and context = 'normal'),
  sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0) + coalesce(read_bytes, 0))
    filter (where object = 'relation'),
  sum(coalesce(writes, 0) + coalesce(extends, 0) + coalesce(reads, 0)) filter (where object = 'relation')
from pg_stat_io
"""


class Sampler:
    """Takes samples of a site and of the processes that load it."""

    def __init__(self, site: Site, clients: Sequence[psutil.Process]) -> None:
        self._site = site
        self._clients = clients
        self._connection = psycopg.connect(site.conninfo, autocommit=True)
        self._begun = 0.0
        self._first: Sample | None = None
        self.samples: list[Sample] = []

    def begin(self) -> None:
        """The load begins now: everything counts from here."""
        self._begun = time.monotonic()
        self._first = None
        self.samples = [self.take()]

    @property
    def seconds(self) -> float:
        """How long the load has lasted."""
        return time.monotonic() - self._begun

    def interval(self, seconds: float) -> float:
        """The time between two samples in a load of so many seconds."""
        return max(_SHORTEST, seconds / _MOST)

    def add(self) -> None:
        self.samples.append(self.take())

    def checkpoint(self) -> bool:
        """Makes PostgreSQL write everything to its place now; False when that is not ours to ask."""
        try:
            self._connection.execute("checkpoint")
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True

    def take(self) -> Sample:
        """Figures of this moment."""
        machine = psutil.cpu_times()
        mark = self._site.server.mark() if self._site.server else None
        wal_bytes, wal_operations, table_bytes, table_operations = self._io()
        now = Sample(
            seconds=self.seconds,
            load_average=load_average(),
            machine=machine.user + machine.nice + machine.system + machine.irq + machine.softirq,
            postgres=mark.postgres if mark else None,
            gateway=mark.gateway if mark else None,
            clients=sum(_seconds(client) for client in self._clients),
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
        field.name: getattr(now, field.name) - getattr(first, field.name)
        for field in fields(Sample)
        if field.name not in ("seconds", "load_average") and getattr(now, field.name) is not None
    }
    return replace(now, **counted)


def _seconds(process: psutil.Process) -> float:
    """CPU seconds of a process and its children."""
    spent = 0.0
    with suppress(psutil.NoSuchProcess):
        for one in [process, *process.children()]:
            with suppress(psutil.NoSuchProcess):
                spent += sum(one.cpu_times()[:2])
    return spent


def write_csv(samples: Sequence[Sample], file: Path) -> None:
    """The samples, one a line."""
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, [field.name for field in fields(Sample)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(sample) for sample in samples)
