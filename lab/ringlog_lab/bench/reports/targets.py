"""The targets of the benchmark: the measured value of each, and whether it is met."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringlog_lab.bench.reports import figures
from ringlog_lab.bench.reports.figures import MEGABYTE, FigureOf
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.native_load import DIRECT, GATEWAY, TDS5, TDS74


@dataclass(frozen=True)
class Target:
    """A bound for a figure of each of `contenders`, by its key; None: it was not measured."""

    title: str
    figure: FigureOf
    bound: float
    at_least: bool = True
    unit: str = ""
    contenders: tuple[str, ...] = tuple(one.key for one in GATEWAY)
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


_FILE_OF_HALF, _FILE_OF_SPRING8 = (
    figures.kept("file of HALF's load"),
    figures.kept("file of SPring-8's reals"),
)

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
    Target("memory for 120 busy connections", figures.memory, 100.0, False, "MB", (TDS5.key,)),
    Target("values/s as columns grow to 250, least step", figures.steps, 1.0, contenders=(TDS5.key,)),
    Target("rows/s read ÷ binary COPY", figures.reads, 0.5),
    Target(
        "a usual text, repeated: time ÷ psycopg's, worst", figures.text_ratio, 1.3, False, "", (TDS74.key,)
    ),
    Target(
        "a usual select read and translated",
        figures.compiling("key", "join"),
        100.0,
        False,
        "µs",
        (TDS74.key,),
    ),
    Target("200 columns read and translated", figures.compiling("wide"), 1000.0, False, "µs", (TDS74.key,)),
    Target(
        "longest put beside 1,000 new texts/s, more than alone",
        figures.longest_during_texts,
        5.0,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "waveforms: MB/s ÷ direct inserts, worst",
        figures.waveforms(lambda one: one.rate, DIRECT.key),
        0.8,
        remark=figures.waveforms_by_cpu,
    ),
    Target(
        "waveforms: gateway CPU ÷ CPU of PostgreSQL's backends, worst",
        figures.waveforms(lambda one: one.gateway_share, None),
        0.25,
        at_least=False,
    ),
    Target("waveforms read ÷ binary COPY, worst", figures.waveforms_read, 0.8),
    Target(
        "p99 of small rows beside waveforms ÷ alone",
        figures.beside_waveforms,
        3.0,
        False,
        "",
        (TDS5.key,),
        figures.beside_waveforms_direct,
    ),
    Target(
        "writers beside readers: calls/s ÷ direct's beside the same, worst",
        figures.beside_readers_to_direct("mixed", lambda one: one.writing.rate if one.writing else 0.0, min),
        1.0,
        contenders=(TDS74.key,),
    ),
    Target(
        "writers beside readers: p99 ÷ direct's beside the same, worst",
        figures.beside_readers_to_direct("mixed", lambda one: one.writing.p99 if one.writing else 0.0, max),
        1.0,
        at_least=False,
        contenders=(TDS74.key,),
    ),
    Target(
        "one writer beside 4 readers: p99", figures.lone_beside_readers(4, 0), 16.0, False, "ms", (TDS74.key,)
    ),
    Target(
        "one writer beside 4 readers at nice 19: p99",
        figures.lone_beside_readers(4, 19),
        10.0,
        False,
        "ms",
        (TDS74.key,),
    ),
    Target(
        "one writer beside readers: longest wait",
        figures.longest_lone_beside_readers,
        100.0,
        False,
        "ms",
        (TDS74.key,),
    ),
    Target(
        "readers without writers: rows/s ÷ psycopg's, worst",
        figures.beside_readers_to_direct(None, lambda one: one.rate, min),
        0.8,
        contenders=(TDS74.key,),
    ),
    Target("longest wait of a reader", figures.longest_wait_of_a_reader, 1.0, False, "s", (TDS74.key,)),
    # papers/003 reached 118 MB/s of CSV: its network's 1 Gb/s
    Target(
        "CSV by one client", figures.fetched("csv", 1, "speed", MEGABYTE), 118.0, True, "MB/s", (TDS5.key,)
    ),
    Target(
        "Arrow by one client", figures.fetched("rows", 1, "speed", MEGABYTE), 500.0, True, "MB/s", (TDS5.key,)
    ),
    Target(
        "Arrow by one client, waveforms",
        figures.fetched("waveforms, arrow", 1, "speed", MEGABYTE),
        500.0,
        True,
        "MB/s",
        (TDS5.key,),
    ),
    Target(
        "Arrow by one client, rows", figures.fetched("rows", 1, "rate"), 1e7, True, "values/s", (TDS5.key,)
    ),
    Target("the slowest form by one client", figures.slowest_form, 1.4e6, True, "values/s", (TDS5.key,)),
    Target("a trend of one signal, slowest", figures.slowest_trend(1), 5.0, False, "ms", (TDS5.key,)),
    Target("a trend of ten signals, slowest", figures.slowest_trend(10), 25.0, False, "ms", (TDS5.key,)),
    Target("a value of HALF's load in a file", _FILE_OF_HALF, 2.3, False, "bytes", (TDS5.key,)),
    Target("a value of SPring-8's reals in a file", _FILE_OF_SPRING8, 1.2, False, "bytes", (TDS5.key,)),
    Target(
        "a file read as a whole",
        figures.kept("reading SPring-8's reals"),
        100.0,
        True,
        "M values/s",
        (TDS5.key,),
    ),
    Target(
        "one signal of a file",
        figures.kept("reading one signal of SPring-8's reals"),
        10.0,
        True,
        "M values/s",
        (TDS5.key,),
    ),
    Target(
        "archived: planning",
        figures.old_weeks("planning a query of a recent day"),
        10.0,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "archived: a query of a recent day",
        figures.old_weeks("a query of a recent day, more than without the archive"),
        0.5,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "archived: the newest ten rows",
        figures.old_weeks("the newest ten rows"),
        20.0,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "archived: the oldest ten rows",
        figures.old_weeks("the oldest ten rows"),
        20.0,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "archived: one column of a week",
        figures.old_weeks("one column of a week"),
        0.8,
        False,
        "s",
        (TDS5.key,),
    ),
    Target(
        "archived: aggregates of a year",
        figures.old_weeks("count, min, max, avg of a year of one signal"),
        1.0,
        False,
        "s",
        (TDS5.key,),
    ),
    Target(
        "archived: a trend of all weeks",
        figures.old_weeks("a trend of all weeks"),
        20.0,
        False,
        "ms",
        (TDS5.key,),
    ),
    Target(
        "archived: memory", figures.old_weeks("memory of the archive server"), 512.0, False, "MB", (TDS5.key,)
    ),
    # "writers' p99 does not move": the accuracy of a median of a few rounds
    Target(
        "p99 of puts beside the archive ÷ alone", figures.p99_during("archive"), 1.1, False, "", (TDS74.key,)
    ),
    Target(
        "p99 of puts beside 100 readers ÷ alone", figures.p99_during("http"), 2.0, False, "", (TDS74.key,)
    ),
    Target(
        "memory of 100 readers",
        figures.fetched("csv", 100, "memory", MEGABYTE),
        500.0,
        False,
        "MB",
        (TDS5.key,),
    ),
)


def verdicts(results: Results) -> Iterator[Verdict]:
    """The outcome of each target."""
    for target in TARGETS:
        measured = {contender: target.figure(results, contender) for contender in target.contenders}
        yield Verdict(target, measured, target.remark(results))
