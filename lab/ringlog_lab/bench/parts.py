"""The parts of a run, in the order of their measurement."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import (
    Tables,
    frames,
    half,
    history,
    main_tables,
    many_tables,
    narrow_and_wide,
    old_week,
    ten_years,
    waveforms,
)
from ringlog.loadtest.experiment.native import WARM
from ringlog_lab.bench.during_archiving import measure_during_archiving
from ringlog_lab.bench.during_http import measure_during_http
from ringlog_lab.bench.logins import measure_logins
from ringlog_lab.bench.many_tables import measure_many_tables
from ringlog_lab.bench.mixed import CONTENDERS as MIXED
from ringlog_lab.bench.mixed import NICE, READERS, measure_mixed
from ringlog_lab.bench.over_http import CLIENTS, FORMS, OF_WAVEFORMS, fetch
from ringlog_lab.bench.reading import fill, read_alternating
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.bench.text import measure_compiling, measure_during_texts, measure_texts, usual
from ringlog_lab.bench.waveforms import (
    POINTS,
    SMALL,
    allow_inserts,
    measure_waveforms,
    write_alternating,
)
from ringlog_lab.native_load import (
    CONTENDERS,
    DIRECT,
    GATEWAY,
    PIPELINED,
    TDS5,
    Contender,
    Load,
    Stand,
)

USUAL = ("write", "lone", "memory", "columns", "read")
"""the parts of a run without named parts"""
PARTS = (*USUAL, "mixed", "text", "retrieval", "history", "archive", "waveforms", "tables", "logins")
WIDTHS = (1, 10, 50, 100, 200, 250, 500, 1000)
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
    readers: Sequence[int] = READERS
    """during the writers of part mixed"""
    count: int = 600
    """of the tables of part tables"""
    rows: int = 100_000
    """of the log that parts read, mixed and retrieval read"""
    minutes: int = 5
    """of HALF's load in part history"""
    writers: int = 4
    """of part waveforms"""
    logins: int = 2000
    """at once in part logins"""
    weeks: int = 520
    """archived, of part archive"""

    def tables(self) -> Iterator[Tables]:
        """The required tables."""
        if self.loads_main:
            yield main_tables(self.columns)
        if "columns" in self.parts:
            yield from map(narrow_and_wide, WIDTHS)
        if self.reads_history:
            yield history(self.columns)
        if "retrieval" in self.parts:
            yield frames()
        if "history" in self.parts:
            yield ten_years()
            yield half()
            yield old_week()
        if not {"tables", "logins", "archive"}.isdisjoint(self.parts):
            # separate servers have their own tables
            yield many_tables(1)
        if "waveforms" in self.parts:
            yield SMALL
            yield from (waveforms(points, self.writers) for points in POINTS)

    @property
    def loads_main(self) -> bool:
        return self.stall is not None or any(
            part in self.parts
            for part in ("write", "lone", "memory", "mixed", "text", "retrieval", "history")
        )

    @property
    def reads_history(self) -> bool:
        return any(part in self.parts for part in ("read", "mixed", "retrieval"))

    @property
    def short(self) -> float:
        """Of the many measurements of single callers and of widths."""
        return max(0.5, self.seconds / 2)

    def steps(self) -> Iterator[tuple[str, float]]:
        """The steps, and their approximate seconds, for a progress bar."""
        each = _START + WARM
        if self.loads_main:
            yield "writing each row of the rings once", min(_LAP, 5 * self.seconds)
        if "write" in self.parts:
            yield "write", len(CONTENDERS) * self.rounds * (each + self.seconds)
        if "lone" in self.parts:
            yield "lone", 3 * self.lone_rounds * (each + self.short)
        if "memory" in self.parts:
            yield "memory", each + self.seconds
        if "columns" in self.parts:
            yield "columns", len(WIDTHS) * 2 * self.width_rounds * (each + self.short)
        if "read" in self.parts:
            yield "read", 5 + 3 * (self.rounds + 1)
        if "mixed" in self.parts:
            stands = sum(len(MIXED) * (len(NICE) if count else 1) for count in self.readers)
            yield "mixed", 5 + self.mixed_rounds * stands * (4 + self.seconds + 2 * (each + self.seconds))
        if "text" in self.parts:
            timed = sum(2 if one.changes else 3 for one in usual(main_tables(self.columns)))
            texts = timed * self.text_seconds
            yield "text", 5 + self.text_rounds * (texts + 2 * (each + self.seconds))
        if "retrieval" in self.parts:
            beside = 2 * self.mixed_rounds * (each + self.seconds)
            forms = len(FORMS | OF_WAVEFORMS)
            yield "retrieval", 20 + forms * len(CLIENTS) * (1 + self.short) + beside
        if "history" in self.parts:
            yield "history", 120 + 20 * self.minutes
        if "archive" in self.parts:
            yield "archive", 60 + self.weeks / 10
        if "waveforms" in self.parts:
            writing = 3 * len(POINTS) * self.rounds * (each + self.short)
            yield "waveforms", writing + 10 * self.rounds + 60
        if "tables" in self.parts:
            yield "tables", 20 + self.count / 10
        if "logins" in self.parts:
            yield "logins", 10 + self.seconds + self.logins / 20
        if self.stall is not None:
            for seconds in self.stall_spans:
                yield "stall", 2 * (each + seconds)

    @property
    def stall_spans(self) -> list[float]:
        """Seconds of the spans into which `stall` is divided, in turns with direct calls."""
        spans = max(1, round((self.stall or 0.0) / _SPAN))
        return [(self.stall or 0.0) / spans] * spans

    @property
    def lone_rounds(self) -> int:
        return min(3, self.rounds)

    @property
    def mixed_rounds(self) -> int:
        return min(3, self.rounds)

    @property
    def text_rounds(self) -> int:
        return min(3, self.rounds)

    @property
    def text_seconds(self) -> float:
        """Of one text by one client."""
        return max(0.2, self.seconds / 5)

    @property
    def width_rounds(self) -> int:
        return min(2, self.rounds)


def measure(plan: Plan, stand: Stand, results: Results, doing: Callable[[str, str], None]) -> None:
    """Measures all parts of the plan into the results. Calls `doing` with the part and the current step."""
    _Measuring(plan, stand, results, doing).run()


@contextmanager
def _folder(part: str) -> Iterator[Path]:
    """For a server of its own."""
    with TemporaryDirectory(prefix=f"ringlog-bench-{part}-") as name:
        folder = Path(name)
        # PostgreSQL's account has to reach it
        folder.chmod(0o755)
        yield folder


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
            self._alternate("write", tuple(CONTENDERS.values()), [self._main], plan.connections, plan.rounds)
        if "lone" in plan.parts:
            self._alternate("lone", (DIRECT, *GATEWAY), [self._main], 1, plan.lone_rounds)
        if "memory" in plan.parts:
            self._one("memory", TDS5, self._main, _BUSY, plan.seconds)
        if "columns" in plan.parts:
            widths = [*map(narrow_and_wide, WIDTHS)]
            self._alternate("columns", (DIRECT, TDS5), widths, plan.connections, plan.width_rounds)
        if plan.reads_history:
            first = next(part for part in ("read", "mixed", "retrieval") if part in plan.parts)
            self._doing(first, "filling a log")
            fill(self._stand.server.administrator, history(plan.columns), plan.rows)
        if "read" in plan.parts:
            self._read()
        if "mixed" in plan.parts:
            self._mixed()
        if "text" in plan.parts:
            self._text()
        if "retrieval" in plan.parts:
            self._retrieval()
        if "history" in plan.parts:
            self._history()
        if "archive" in plan.parts:
            self._archive()
        if "waveforms" in plan.parts:
            self._waveforms()
        if "tables" in plan.parts:
            self._many_tables()
        if "logins" in plan.parts:
            self._logins()
        if plan.stall is not None:
            for round, seconds in enumerate(plan.stall_spans):
                for contender in (TDS5, DIRECT):
                    self._one("stall", contender, self._main, plan.connections, seconds, round)

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

    def _alternate(
        self,
        part: str,
        contenders: tuple[Contender, ...],
        tables: Sequence[Tables],
        connections: int,
        rounds: int,
    ) -> None:
        """Runs each contender in turn, round by round; each round begins with another one."""
        seconds = self._plan.seconds if part == "write" else self._plan.short
        for round in range(rounds):
            for some in tables:
                for place in range(len(contenders)):
                    contender = contenders[(place + round) % len(contenders)]
                    self._one(part, contender, some, connections, seconds, round)

    def _one(
        self,
        part: str,
        contender: Contender,
        tables: Tables,
        connections: int,
        seconds: float,
        round: int = 0,
    ) -> None:
        width = f", {tables.columns} columns" if part == "columns" else ""
        self._doing(part, f"{contender.title}{width}")
        load = Load(contender, tables, connections, seconds)
        self._results.measurements.append(self._stand.run(load, part, round))

    def _read(self) -> None:
        tables, server = history(self._plan.columns), self._stand.server
        self._doing("read", "reading it")
        plan = self._plan
        readings = read_alternating(self._stand.programs, server, tables, plan.rounds, plan.rows)
        self._results.readings.extend(readings)

    def _retrieval(self) -> None:
        plan = self._plan
        for one in fetch(self._stand.server, history(plan.columns), plan.rows, plan.short):
            self._doing("retrieval", f"{one.form} by {one.clients}")
            self._results.fetching.append(one)
        self._results.disturbed.extend(
            measure_during_http(
                self._stand,
                self._main,
                history(self._plan.columns),
                connections=self._plan.connections,
                seconds=self._plan.seconds,
                rounds=self._plan.mixed_rounds,
                doing=lambda what: self._doing("retrieval", what),
            )
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
                    rounds=plan.mixed_rounds,
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

        with _folder("archive") as folder:
            size = Size(self._plan.weeks)
            self._results.old_weeks.extend(measure_old_weeks(folder, size, self._plan.rounds, doing))

    def _waveforms(self) -> None:
        def doing(what: str) -> None:
            self._doing("waveforms", what)

        plan, stand = self._plan, self._stand
        allow_inserts(stand.server, plan.writers)
        self._results.measurements.extend(
            write_alternating(stand, plan.writers, plan.short, plan.rounds, doing)
        )
        data = Path(stand.server.administrator.execute("show data_directory").fetchall()[0][0])
        self._results.waveforms = measure_waveforms(stand, data, plan.writers, plan.short, plan.rounds, doing)

    def _many_tables(self) -> None:
        with _folder("tables") as folder:
            self._results.many_tables.extend(
                measure_many_tables(folder, self._plan.count, lambda what: self._doing("tables", what))
            )

    def _logins(self) -> None:
        plan = self._plan
        with _folder("logins") as folder:
            found = measure_logins(
                self._stand.programs,
                folder,
                plan.logins,
                plan.seconds,
                lambda what: self._doing("logins", what),
            )
            self._results.logins.extend(found)

    def _mixed(self) -> None:
        plan = self._plan
        self._results.mixed.extend(
            measure_mixed(
                self._stand,
                self._main,
                history(plan.columns),
                connections=plan.connections,
                seconds=plan.seconds,
                rounds=plan.mixed_rounds,
                readers=plan.readers,
                doing=lambda what: self._doing("mixed", what),
            )
        )

    def _text(self) -> None:
        plan, results = self._plan, self._results

        def doing(what: str) -> None:
            self._doing("text", what)

        results.timings.extend(
            measure_texts(
                self._stand, self._main, seconds=plan.text_seconds, rounds=plan.text_rounds, doing=doing
            )
        )
        results.compiling.extend(measure_compiling(self._stand, self._main, doing))
        results.disturbed.extend(
            measure_during_texts(
                self._stand,
                self._main,
                self._main,
                seconds=plan.seconds,
                rounds=plan.text_rounds,
                doing=doing,
            )
        )
