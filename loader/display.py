"""The display of running writers: a live table on a terminal, lines elsewhere."""

import logging
import math
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from ringlog.clients.figures import State
from ringlog.loader.statistics import Latencies, Statistics
from ringlog.schema.facility import SampleTable, Table

log = logging.getLogger(__name__)

# Rates are means over this many seconds: as long as the slowest cycles.
_WINDOW = 30.0
_LINE_EVERY = 10.0

_COLOURS = {
    State.STARTING: "dim",
    State.RECONNECTING: "yellow",
    State.HELD: "yellow",
    State.DEAD: "red",
    State.FAILED: "red",
    State.REFUSED: "red",
}


def milliseconds(seconds: float) -> str:
    """A latency as displayed: 0.85 ms, 12.3 ms, 1200 ms; a dash for NaN."""
    if math.isnan(seconds):
        return "-"
    return f"{seconds * 1000:.{2 if seconds < 0.01 else 1 if seconds < 0.1 else 0}f} ms"


class Rates(NamedTuple):
    """Rates of acknowledged rows and bytes."""

    rows: dict[str, float]
    """of each table"""
    bytes: float
    """of the values of all of them"""


class Board:
    """Rates and troubles of writers, from their statistics."""

    def __init__(self, tables: Sequence[Table | SampleTable], statistics: Mapping[str, Statistics]) -> None:
        self._tables = {table.name: table for table in tables}
        self._statistics = statistics
        self._began = time.monotonic()
        self._past: deque[tuple[float, dict[str, int], int]] = deque()

    def rates(self) -> Rates:
        """The present rates; call it regularly."""
        moment = time.monotonic()
        counts = {name: one.acknowledged for name, one in self._statistics.items()}
        total = sum(one.bytes for one in self._statistics.values())
        while self._past and self._past[0][0] < moment - _WINDOW:
            self._past.popleft()
        self._past.append((moment, counts, total))
        since, before, total_before = self._past[0]
        seconds = moment - since or math.inf
        rows = {name: (count - before[name]) / seconds for name, count in counts.items()}
        return Rates(rows, (total - total_before) / seconds)

    def summary(self, rates: Rates) -> str:
        """All writers in one line."""
        working = sum(one.state in (State.RUNNING, State.STARTING) for one in self._statistics.values())
        return f"{working} of {len(self._statistics)} writers running · {self.figures(rates)}"

    def figures(self, rates: Rates) -> str:
        """The sum of all writers' figures."""
        statistics = self._statistics.values()
        latencies = Latencies(statistics)
        parts = [
            f"{sum(rates.rows.values()):.1f} rows/s, {rates.bytes / 1000:.1f} kB/s",
            f"{sum(one.acknowledged for one in statistics)} rows acknowledged",
            f"p50 {milliseconds(latencies.quantile(0.5))}, p99 {milliseconds(latencies.quantile(0.99))}, "
            f"max {milliseconds(latencies.longest or math.nan)}",
            *_troubles(statistics),
        ]
        return " · ".join(parts)

    def grid(self, rates: Rates, height: int) -> RenderableType:
        """The table for a terminal of `height` lines, those in trouble first."""
        grid = Grid(expand=True, pad_edge=False, box=None)
        for heading in ("table", "state"):
            grid.add_column(heading, no_wrap=True)
        for heading in ("row", "rows/s", "latency", "written"):
            grid.add_column(heading, no_wrap=True, justify="right")
        grid.add_column("trouble", ratio=1, no_wrap=True, overflow="ellipsis")
        names = sorted(self._statistics, key=lambda name: (-self._urgency(name), name))
        shown = names[: max(1, height - 6)]
        for name in shown:
            one, table = self._statistics[name], self._tables[name]
            state = State(one.state)
            grid.add_row(
                name,
                Text(state.name.lower(), style=_COLOURS.get(state, "")),
                f"{one.seq_no}/{table.rows}" if isinstance(table, Table) else "samples",
                f"{rates.rows[name]:.2f}",
                milliseconds(one.last_latency or math.nan),
                f"{one.acknowledged}",
                Text(", ".join([*_troubles([one]), *filter(None, [one.message])]), style="dim"),
            )
        if len(shown) < len(names):
            grid.add_row(Text(f"and {len(names) - len(shown)} more", style="dim"))
        return Group(Text(self.summary(rates)), grid)

    def _urgency(self, name: str) -> int:
        one = self._statistics[name]
        if one.state not in (State.RUNNING, State.DONE):
            return 2
        return 1 if _troubles([one]) else 0


def _troubles(statistics: Collection[Statistics]) -> list[str]:
    """The numbers of failures and losses above 0."""
    counts = {
        "refused": sum(one.refused for one in statistics),
        "thinned": sum(one.thinned for one in statistics),
        "repeated": sum(one.repeated for one in statistics),
        "missed": sum(one.missed for one in statistics),
        "skipped": sum(one.skipped for one in statistics),
        "dropped": sum(one.dropped for one in statistics),
        "late": sum(one.late for one in statistics),
        # a row that is being sent is not a problem
        "waiting": sum(one.spooled for one in statistics if one.spooled > 1),
        "restarted": sum(one.restarts for one in statistics),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


class Display(Protocol):
    """Shows a board repeatedly."""

    def show(self) -> None: ...

    def close(self) -> None: ...


class LiveDisplay:
    """A table at a fixed place of the terminal, without a thread, because processes are forked meanwhile."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board = board
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self) -> None:
        self._live.update(self._board.grid(self._board.rates(), self._console.height), refresh=True)

    def close(self) -> None:
        self._live.stop()


class LineDisplay:
    """A log line every ten seconds, and one for each new trouble."""

    def __init__(self, board: Board, statistics: Mapping[str, Statistics]) -> None:
        self._board = board
        self._statistics = statistics
        self._troubles = dict.fromkeys(statistics, "")
        self._due = time.monotonic() + _LINE_EVERY

    def show(self) -> None:
        rates = self._board.rates()
        for name, one in self._statistics.items():
            if (message := one.message) != self._troubles[name]:
                self._troubles[name] = message
                log.warning("%s: %s", name, message)
        if time.monotonic() >= self._due:
            self._due += _LINE_EVERY
            log.info("%s", self._board.summary(rates))

    def close(self) -> None:
        pass
