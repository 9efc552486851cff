"""The CPU of a server by its threads and processes, and how fast the machine was meanwhile."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

import psutil

from ringlog.loadtest.experiment.server import Server, process_cpu
from ringlog.loadtest.experiment.text_table import TextTable

_SHOWN = 9
"""Kinds of threads and processes in the report; the rest is `others`."""
_STEPS = 300_000
"""of the fixed piece of work: some 20 ms"""


@dataclass(frozen=True)
class Stretch:
    """The part of a run between two records. CPU in seconds."""

    title: str
    rows: int
    total: float
    kinds: Mapping[str, float]


def cpu_of_parts(server: Server, backends: Mapping[int, str]) -> dict[str, float]:
    """CPU in seconds of each thread of the gateway's process and each process of PostgreSQL, by its name and
    number. `backends`: the names of those of PostgreSQL, by their numbers."""
    seconds = {}
    for pid, name in backends.items():
        # it may have ended since
        with suppress(psutil.NoSuchProcess):
            seconds[f"PostgreSQL: {name} {pid}"] = process_cpu(psutil.Process(pid))
    for thread in server.gateway.threads():
        with suppress(FileNotFoundError, ProcessLookupError):
            name = Path(f"/proc/{server.gateway.pid}/task/{thread.id}/comm").read_text().strip()
            seconds[f"gateway: {name} {thread.id}"] = thread.user_time + thread.system_time
    return seconds


def by_kind(begin: Mapping[str, float], end: Mapping[str, float]) -> dict[str, float]:
    """The CPU in seconds that each kind of thread or process used between two answers of `cpu_of_parts`.
    Those of a kind have the same name, up to its first word that begins with a digit: a time or a number."""
    seconds: dict[str, float] = defaultdict(float)
    for part, until_end in end.items():
        kind = " ".join(takewhile(lambda word: not word[0].isdigit(), part.split()))
        seconds[kind] += until_end - begin.get(part, 0.0)
    return dict(seconds)


def fixed_work() -> float:
    """CPU in seconds of a piece of work that is always the same: how fast the machine is."""
    begin = time.thread_time()
    sum(number * number for number in range(_STEPS))
    return time.thread_time() - begin


def table_of(stretches: Sequence[Stretch]) -> TextTable:
    kinds = {*chain.from_iterable(each.kinds for each in stretches)}
    shown = sorted(kinds, key=lambda kind: -sum(each.kinds.get(kind, 0.0) for each in stretches))[:_SHOWN]
    rows = []
    for each in stretches:
        parts = [each.kinds.get(kind, 0.0) for kind in shown]
        cells = [each.total, *parts, each.total - sum(parts)]
        rows.append([each.title, *(f"{1e6 * seconds / each.rows:.1f}" for seconds in cells)])
    return TextTable("CPU of the server, µs a row", ["until day", "all", *shown, "others"], rows)
