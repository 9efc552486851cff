"""The targets of the benchmark: the measured value of each, and whether it is met."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringlog_lab.bench.reports import figures
from ringlog_lab.bench.reports.figures import FigureOf
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.native_load import TDS5, TDS74


@dataclass(frozen=True)
class Target:
    """A bound for a figure of each of `contenders`, by its key; None: it was not measured."""

    title: str
    figure: FigureOf
    bound: float
    at_least: bool = True
    unit: str = ""
    contenders: tuple[str, ...] = (TDS5.key, TDS74.key)
    remark: Callable[[Results], str] = lambda _: ""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a target."""

    target: Target
    measured: dict[str, float | None]
    remark: str

    @property
    def met(self) -> bool | None:
        """Whether every figure keeps the bound; None when nothing was measured."""
        figures = [figure for figure in self.measured.values() if figure is not None]
        keeps = operator.ge if self.target.at_least else operator.le
        return all(keeps(figure, self.target.bound) for figure in figures) if figures else None

    @property
    def text(self) -> str:
        return {True: "met", False: "missed", None: "not measured"}[self.met]


def _once(title: str, figure: FigureOf, bound: float, unit: str, *, at_least: bool = False) -> Target:
    """A figure that no contender has for itself."""
    return Target(title, figure, bound, at_least, unit, (TDS5.key,))


_TARGETS_OF_OLD_WEEKS = (
    ("planning", "planning a query of a recent day", 10.0, "ms"),
    ("a query of a recent day", "a query of a recent day, more than without the archive", 0.5, "ms"),
    ("the newest ten rows", "the newest ten rows", 20.0, "ms"),
    ("the oldest ten rows", "the oldest ten rows", 20.0, "ms"),
    ("one column of a week", "one column of a week", 0.8, "s"),
    ("aggregates of a year", "count, min, max, avg of a year of one signal", 1.0, "s"),
    ("a trend of all weeks", "a trend of all weeks", 20.0, "ms"),
    ("memory", "memory of the archive server", 512.0, "MB"),
)
"""Title, beginning of the measured figure's name, bound and unit."""

TARGETS = (
    Target("calls/s ÷ direct, one by one", figures.rate, 1.0, remark=figures.rate_by_cpu),
    Target(
        "calls/s ÷ direct, pipelined; without clients' CPU",
        figures.of_the_limit,
        0.8,
        remark=figures.limit_by_cpu,
    ),
    Target("gateway CPU ÷ CPU of PostgreSQL's backends", figures.own_cpu, 0.25, at_least=False),
    Target("p99 ÷ p99 of direct, one by one", figures.p99, 1.5, at_least=False),
    Target("lone caller: median, more than direct", figures.added_latency, 60.0, at_least=False, unit="µs"),
    Target(
        "longest stall at full rate", figures.stall, 250.0, False, "ms", (TDS5.key,), figures.stall_seconds
    ),
    _once("memory for 120 busy connections", figures.memory, 100.0, "MB"),
    Target("rows/s read ÷ binary COPY", figures.reads, 0.5),
    Target(
        "a usual text, repeated: time ÷ psycopg's, worst", figures.text_ratio, 1.3, False, "", (TDS74.key,)
    ),
    _once("a usual select read and translated", figures.compiling("key", "join"), 100.0, "µs"),
    _once("200 columns read and translated", figures.compiling("wide"), 1000.0, "µs"),
    _once("longest put beside 1,000 new texts/s, more than alone", figures.longest_during_texts, 5.0, "ms"),
    _once("a trend of one signal, slowest", figures.slowest_trend(1), 5.0, "ms"),
    _once("a trend of ten signals, slowest", figures.slowest_trend(10), 25.0, "ms"),
    _once("a value of HALF's load in a file", figures.kept("file of HALF's load"), 2.3, "bytes"),
    _once("a value of SPring-8's reals in a file", figures.kept("file of SPring-8's reals"), 1.2, "bytes"),
    _once(
        "a file read as a whole", figures.kept("reading SPring-8's reals"), 100.0, "M values/s", at_least=True
    ),
    _once(
        "one signal of a file",
        figures.kept("reading one signal of SPring-8's reals"),
        10.0,
        "M values/s",
        at_least=True,
    ),
    *(
        _once(f"archived: {title}", figures.old_weeks(name), bound, unit)
        for title, name, bound, unit in _TARGETS_OF_OLD_WEEKS
    ),
    # "writers' p99 does not move": the accuracy of a median of a few rounds
    Target(
        "p99 of puts beside the archive ÷ alone", figures.p99_during("archive"), 1.1, False, "", (TDS74.key,)
    ),
)


def verdicts(results: Results) -> Iterator[Verdict]:
    """The outcome of each target."""
    for target in TARGETS:
        measured = {contender: target.figure(results, contender) for contender in target.contenders}
        yield Verdict(target, measured, target.remark(results))
