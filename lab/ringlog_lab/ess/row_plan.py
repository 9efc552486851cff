"""How many servers a load of rows needs, from measured loads of tables of several widths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.spring8.results import Result, Run, read_results
from ringlog_lab.ess.model import Regression, regression, size

BUSY = 0.5
"""The fraction of a server's cores for writing: readers, summaries and the archive need the rest."""
_DAY = 86_400
_CLIENTS = "native"
"""Runs of clients that need no more of the machine than their calls."""


@dataclass(frozen=True)
class RowCost:
    """The cost of rows on a server, by their data columns."""

    cpu: Regression
    """seconds of PostgreSQL's and the gateway's processors"""
    wal: Regression
    """bytes of write-ahead log"""
    result: Result

    @property
    def most(self) -> float:
        """The most rows a second of the widest tables that were measured."""
        return min(run.rows for run in _loads(self.result))


def row_cost(folder: Path) -> RowCost:
    """The cost by the results of `ringlog loadtest columns` in a folder. Raises LoadTestError."""
    found = read_results(folder, ("columns",))
    if not found:
        raise LoadTestError(f"{folder} has no results of ringlog loadtest columns: run it first")
    loads = _loads(found[0])
    return RowCost(
        regression([(run.columns, cpu_of(run)) for run in loads]),
        regression([(run.columns, wal_of(run)) for run in loads]),
        found[0],
    )


def cpu_of(run: Run) -> float:
    """Seconds of the processors that a row took of PostgreSQL and the gateway."""
    first, last = run.samples[0], run.samples[-1]
    spent = [
        getattr(last, who) - getattr(first, who)
        for who in ("postgres", "gateway")
        if getattr(last, who) is not None
    ]
    return float(sum(spent)) / (run.rows * (last.seconds - first.seconds))


def wal_of(run: Run) -> float:
    """Bytes of write-ahead log for a row."""
    first, last = run.samples[0], run.samples[-1]
    written = (last.wal_bytes or 0) - (first.wal_bytes or 0)
    return written / (run.rows * (last.seconds - first.seconds))


def _loads(result: Result) -> list[Run]:
    return [run for run in result.runs if run.clients == _CLIENTS and len(run.samples) > 1 and run.rows > 0]


def answer(cost: RowCost, signals: int, rate: float, columns: int, cores: int, disk: float) -> Sequence[str]:
    """The plan, a line for each resource. `disk` is the durable rate of a disk, in MB/s."""
    rows = math.ceil(signals / columns) * rate
    needed = rows * cost.cpu.at(columns)
    wal = rows * max(0.0, cost.wal.at(columns)) / 1e6
    # the log of rows and the rings share the disk with the write-ahead log
    by_cores, by_disk = needed / (BUSY * cores), 2 * wal / disk
    nodes = max(1, math.ceil(by_cores), math.ceil(by_disk))
    machine = cost.result.machine
    lines = [
        f"{signals:,} signals at {rate:g} Hz in tables of {columns}: {rows:,.0f} rows/s, "
        f"{rows * columns / 1e6:,.2f} million values/s",
        f"CPU        {needed:,.2f} cores like those of {machine.processor} for writing "
        f"({1e6 * cost.cpu.at(columns):,.0f} ± {1e6 * cost.cpu.error(columns):,.0f} µs a row)",
        f"WAL        {wal:,.1f} MB/s, {size(wal * 1e6 * _DAY)} a day; as much to each standby",
        f"servers    {nodes} of {cores} cores, {BUSY:.0%} of them for writing, each with a disk that writes"
        f" {disk:g} MB/s durably: the {'disk' if by_disk > by_cores else 'processor'} is the limit",
        f"each       {rows / nodes:,.0f} rows/s, {needed / nodes:,.2f} cores, {wal / nodes:,.1f} MB/s of WAL",
        f"measured   {cost.result.began}, {cost.cpu.count} loads of 60 writers",
    ]
    if rows / nodes > cost.most:
        times = rows / nodes / cost.most
        lines.append(
            f"Each server would store {times:,.1f} times the {cost.most:,.0f} rows/s of the widest tables"
            f" measured, on {machine.cores} cores: the figures are extrapolated"
        )
    return lines
