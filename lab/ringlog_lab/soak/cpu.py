"""The CPU of a server by its threads and processes, and how fast the machine was meanwhile."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

from ringlog.loadtest.experiment.server import Server
from ringlog.loadtest.experiment.text_table import TextTable

_SHOWN = 9
"""Kinds of threads and processes in the report; the rest is `others`."""
_STEPS = 300_000


@dataclass(frozen=True)
class Spent:
    """CPU in seconds, since the server was started."""

    total: float
    """of ringlog serve and PostgreSQL, with threads and processes that have ended"""
    parts: dict[str, float]
    """of each that is there, by its name and number"""


@dataclass(frozen=True)
class Stretch:
    """The part of a run between two records."""

    title: str
    rows: int
    begin: Spent
    end: Spent

    def kinds(self) -> dict[str, float]:
        """Seconds by name, without the numbers of processes and the times of starts."""
        found: dict[str, float] = defaultdict(float)
        for part, seconds in self.end.parts.items():
            kind = " ".join(takewhile(lambda word: not word[0].isdigit(), part.split()))
            found[kind] += seconds - self.begin.parts.get(part, 0.0)
        return found


def spent(server: Server, backends: Mapping[int, str]) -> Spent:
    """`backends`: the names of PostgreSQL's processes, by their numbers."""
    mark = server.mark()
    threads = Path(f"/proc/{server.gateway.pid}/task").iterdir()
    tasks = [("PostgreSQL", Path(f"/proc/{pid}"), name) for pid, name in backends.items()]
    tasks += [("gateway", thread, "") for thread in threads]
    parts = {}
    for process, task, name in tasks:
        # it may have ended since
        with suppress(OSError):
            name = name or (task / "comm").read_text().strip()
            parts[f"{process}: {name} {task.name}"] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return Spent(mark.postgres + mark.gateway, parts)


def fixed_work() -> float:
    """CPU in seconds of a piece of work that is always the same: how fast the machine is."""
    begin = time.thread_time()
    sum(number * number for number in range(_STEPS))
    return time.thread_time() - begin


def table_of(stretches: Sequence[Stretch]) -> TextTable:
    found = [each.kinds() for each in stretches]
    sums = {kind: sum(each[kind] for each in found) for kind in {*chain.from_iterable(found)}}
    shown = sorted(sums, key=lambda kind: -sums[kind])[:_SHOWN]
    rows = []
    for each, kinds in zip(stretches, found, strict=True):
        total, parts = each.end.total - each.begin.total, [kinds[kind] for kind in shown]
        cells = [f"{1e6 * seconds / each.rows:.1f}" for seconds in (total, *parts, total - sum(parts))]
        rows.append([each.title, *cells])
    return TextTable("CPU of the server, µs a row", ["until day", "all", *shown, "others"], rows)
