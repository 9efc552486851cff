"""The parts of a run, in the order of their measurement."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import (
    Tables,
    half,
    history,
    main_tables,
    old_week,
    small_table,
    ten_years,
)
from ringlog.loadtest.experiment.native import WARM
from ringlog_lab.bench.during_archiving import measure_during_archiving
from ringlog_lab.bench.reading import fill, read_alternating
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.bench.text import measure_compiling, measure_during_texts, measure_texts, usual
from ringlog_lab.native_load import CONTENDERS, DIRECT, GATEWAY, PIPELINED, TDS5, Contender, Load, Stand

USUAL = ("write", "lone", "memory", "read")
"""the parts of a run without named parts"""
PARTS = (*USUAL, "text", "history", "archive")
_LAP = 15.0  # seconds at most, to write every row of the rings once
_START = 1.0  # seconds that a client takes to log in its connections
_SPAN = 60.0  # approximate seconds of a contender's turn in the search for stalls
_BUSY = 120  # connections: 60 writers and 60 readers, papers/004


@dataclass(frozen=True)
class Plan:
    """The parts to measure. `seconds` is the length of one measurement."""

    parts: Sequence[str]
    seconds: float
    rounds: int
    columns: int
    connections: int
    stall: float | None = None
    rows: int = 100_000
    """of the log that part read reads"""
    minutes: int = 5
    """of HALF's load in part history"""
    weeks: int = 520
    """archived, of part archive"""

    def tables(self) -> Iterator[Tables]:
        if self.loads_main:
            yield main_tables(self.columns)
        if "read" in self.parts:
            yield history(self.columns)
        if "history" in self.parts:
            yield ten_years()
            yield half()
            yield old_week()
        if "archive" in self.parts:
            # a separate server has its own tables
            yield small_table()

    @property
    def loads_main(self) -> bool:
        return self.stall is not None or not {"write", "lone", "memory", "text", "history"}.isdisjoint(
            self.parts
        )

    @property
    def short(self) -> float:
        """Of the many measurements of single callers."""
        return max(0.5, self.seconds / 2)

    def steps(self) -> Iterator[tuple[str, float]]:
        """The steps, and their approximate seconds, for a progress bar."""
        each = _START + WARM
        if self.loads_main:
            yield "writing each row of the rings once", min(_LAP, 5 * self.seconds)
        if "write" in self.parts:
            yield "write", len(CONTENDERS) * self.rounds * (each + self.seconds)
        if "lone" in self.parts:
            yield "lone", 3 * self.few * (each + self.short)
        if "memory" in self.parts:
            yield "memory", each + self.seconds
        if "read" in self.parts:
            yield "read", 5 + 3 * (self.rounds + 1)
        if "text" in self.parts:
            timed = sum(2 if one.changes else 3 for one in usual(main_tables(self.columns)))
            texts = timed * self.text_seconds
            yield "text", 5 + self.few * (texts + 2 * (each + self.seconds))
        if "history" in self.parts:
            yield "history", 120 + 20 * self.minutes
        if "archive" in self.parts:
            yield "archive", 60 + self.weeks / 10
        if self.stall is not None:
            for seconds in self.stall_spans:
                yield "stall", 2 * (each + seconds)

    @property
    def stall_spans(self) -> list[float]:
        """Seconds of the spans into which `stall` is divided, in turns with direct calls."""
        spans = max(1, round((self.stall or 0.0) / _SPAN))
        return [(self.stall or 0.0) / spans] * spans

    @property
    def few(self) -> int:
        """Rounds of the parts that take long."""
        return min(3, self.rounds)

    @property
    def text_seconds(self) -> float:
        """Of one text by one client."""
        return max(0.2, self.seconds / 5)


def measure(plan: Plan, stand: Stand, results: Results, doing: Callable[[str, str], None]) -> None:
    """Measures all parts of the plan into the results. Calls `doing` with the part and the current step."""
    _Measuring(plan, stand, results, doing).run()


class _Measuring:
    def __init__(self, plan: Plan, stand: Stand, results: Results, doing: Callable[[str, str], None]) -> None:
        self._plan = plan
        self._stand = stand
        self._results = results
        self._doing = doing
        self._main = main_tables(plan.columns)

    def run(self) -> None:
        plan, results = self._plan, self._results
        results.idle_memory = self._stand.server.mark().memory
        if plan.loads_main:
            self._write_rings_once()
        if "write" in plan.parts:
            self._alternate("write", tuple(CONTENDERS.values()), plan.connections, plan.rounds)
        if "lone" in plan.parts:
            self._alternate("lone", (DIRECT, *GATEWAY), 1, plan.few)
        if "memory" in plan.parts:
            self._one("memory", TDS5, _BUSY, plan.seconds)
        if "read" in plan.parts:
            self._read()
        if "text" in plan.parts:
            self._text()
        if "history" in plan.parts:
            self._history()
        if "archive" in plan.parts:
            self._archive()
        if plan.stall is not None:
            for round, seconds in enumerate(plan.stall_spans):
                for contender in (TDS5, DIRECT):
                    self._one("stall", contender, plan.connections, seconds, round)

    def _write_rings_once(self) -> None:
        """Writes every row of the rings once: until then their first rows are where the installer put
        them."""
        self._doing("writing each row of the rings once", "")
        self._stand.server.administrator.execute("checkpoint")
        limit, seconds = min(_LAP, 5 * self._plan.seconds), 0.0
        rows = self._main.count * self._main.rows
        while seconds < limit and self._stand.acknowledged.get(self._main, 0) < rows:
            load = Load(PIPELINED, self._main, self._plan.connections, min(2.5, limit), warm=0.0)
            seconds += self._stand.run(load, "lap").seconds

    def _alternate(self, part: str, contenders: tuple[Contender, ...], connections: int, rounds: int) -> None:
        """Runs each contender in turn, round by round; each round begins with another one."""
        seconds = self._plan.seconds if part == "write" else self._plan.short
        for round in range(rounds):
            for index in range(len(contenders)):
                contender = contenders[(index + round) % len(contenders)]
                self._one(part, contender, connections, seconds, round)

    def _one(self, part: str, contender: Contender, connections: int, seconds: float, round: int = 0) -> None:
        self._doing(part, contender.title)
        load = Load(contender, self._main, connections, seconds)
        self._results.measurements.append(self._stand.run(load, part, round))

    def _read(self) -> None:
        plan, server = self._plan, self._stand.server
        tables = history(plan.columns)
        self._doing("read", "filling a log")
        fill(server.administrator, tables, plan.rows)
        self._doing("read", "reading it")
        self._results.readings.extend(
            read_alternating(self._stand.programs, server, tables, plan.rounds, plan.rows)
        )

    def _history(self) -> None:
        try:
            from ringlog_lab.bench.half_load import measure_half_load
            from ringlog_lab.bench.history import measure_history
        except ModuleNotFoundError as error:
            raise LoadTestError(f"part history takes the extra history ({error.name} is not there)") from None

        def doing(what: str) -> None:
            self._doing("history", what)

        plan, server = self._plan, self._stand.server
        with TemporaryDirectory(prefix="ringlog-bench-history-") as folder:
            self._results.kept.extend(measure_history(server, folder, plan.rounds, doing))
        self._results.kept.extend(measure_half_load(server, plan.minutes, plan.rounds, doing))
        with TemporaryDirectory(prefix="ringlog-bench-archive-") as folder:
            self._results.disturbed.extend(
                measure_during_archiving(
                    self._stand,
                    self._main,
                    Path(folder),
                    connections=plan.connections,
                    seconds=plan.seconds,
                    rounds=plan.few,
                    doing=doing,
                )
            )

    def _archive(self) -> None:
        try:
            from ringlog_lab.bench.old_weeks import Size, measure_old_weeks
        except ModuleNotFoundError as error:
            raise LoadTestError(f"part archive takes the extra history ({error.name} is not there)") from None

        def doing(what: str) -> None:
            self._doing("archive", what)

        with TemporaryDirectory(prefix="ringlog-bench-archive-") as name:
            folder = Path(name)
            # PostgreSQL's account has to reach it
            folder.chmod(0o755)
            size = Size(self._plan.weeks)
            self._results.old_weeks.extend(measure_old_weeks(folder, size, self._plan.rounds, doing))

    def _text(self) -> None:
        plan, results = self._plan, self._results

        def doing(what: str) -> None:
            self._doing("text", what)

        results.timings.extend(
            measure_texts(self._stand, self._main, seconds=plan.text_seconds, rounds=plan.few, doing=doing)
        )
        results.compiling.extend(measure_compiling(self._stand, self._main, doing))
        results.disturbed.extend(
            measure_during_texts(
                self._stand, self._main, self._main, seconds=plan.seconds, rounds=plan.few, doing=doing
            )
        )
