"""The targets of the benchmark: what is measured for each, and whether it is met."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ringlog.loadtest.bench.load import DIRECT, GATEWAY, PIPELINED, TDS5, Measurement
from ringlog.loadtest.bench.reading import COPY
from ringlog.loadtest.bench.results import Results

MEGABYTE = 1e6


@dataclass(frozen=True)
class Target:
    """A bound for a figure, which is asked of each of `contenders` by its key; None: it was not measured."""

    title: str
    figure: Callable[[Results, str], float | None]
    bound: float
    at_least: bool = True
    unit: str = ""
    contenders: tuple[str, ...] = tuple(one.key for one in GATEWAY)
    remark: Callable[[Results], str] = lambda _: ""


@dataclass(frozen=True)
class Verdict:
    """What came of a target."""

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


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _rate(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate, "write", contender),
        results.median(lambda one: one.rate, "write", DIRECT.key),
    )


def _by_cpu(results: Results, other: str, cost: Callable[[Measurement], float]) -> str:
    """The same ratio from the CPU that a call takes: what it would be if nobody else used the machine."""
    than = results.median(lambda one: one.each(cost(one)), "write", other)
    ratios = [
        _ratio(than, results.median(lambda one: one.each(cost(one)), "write", one.key)) for one in GATEWAY
    ]
    told = [f"{ratio:.2f}" for ratio in ratios if ratio is not None]
    return f"by CPU {', '.join(told)}" if told else ""


def _rate_by_cpu(results: Results) -> str:
    told = _by_cpu(results, DIRECT.key, lambda one: one.server + one.clients)
    return f"aim 1.25; {told}" if told else "aim 1.25"


def _limit_by_cpu(results: Results) -> str:
    return _by_cpu(results, PIPELINED.key, lambda one: one.server)


def _of_the_limit(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate_without_clients, "write", contender),
        results.median(lambda one: one.rate_without_clients, "write", PIPELINED.key),
    )


def _own_cpu(results: Results, contender: str) -> float | None:
    return results.median(lambda one: one.gateway / one.backends, "write", contender)


def _p99(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.p99, "write", contender),
        results.median(lambda one: one.p99, "write", DIRECT.key),
    )


def _added_latency(results: Results, contender: str) -> float | None:
    through = results.median(lambda one: one.p50, "lone", contender)
    direct = results.median(lambda one: one.p50, "lone", DIRECT.key)
    return None if through is None or direct is None else (through - direct) * 1e6


def _stall(results: Results, contender: str) -> float | None:
    longest = max((one.max for one in results.of("stall", contender)), default=None)
    return None if longest is None else longest * 1000


def _stall_seconds(results: Results) -> str:
    return "".join(f"in {one.seconds:.0f} s" for one in results.of("stall", TDS5.key)[:1])


def _memory(results: Results, contender: str) -> float | None:
    busy = results.median(lambda one: one.memory, "memory", contender)
    return None if busy is None or results.idle_memory is None else (busy - results.idle_memory) / MEGABYTE


def _steps(results: Results, contender: str) -> float | None:
    """The least of values/s at a number of columns ÷ that at the number before."""
    widths = [columns for columns in results.columns("columns") if columns <= 250]
    values = [results.median(lambda one: one.values, "columns", contender, columns) for columns in widths]
    steps = [_ratio(wider, narrower) for narrower, wider in pairwise(values)]
    return min((step for step in steps if step is not None), default=None)


def _reads(results: Results, contender: str) -> float | None:
    return _ratio(results.reading_rate(contender), results.reading_rate(COPY))


TARGETS = (
    Target("calls/s ÷ direct, one by one", _rate, 1.0, remark=_rate_by_cpu),
    Target("calls/s ÷ direct, pipelined; without clients' CPU", _of_the_limit, 0.8, remark=_limit_by_cpu),
    Target("gateway CPU ÷ CPU of PostgreSQL's backends", _own_cpu, 0.25, at_least=False),
    Target("p99 ÷ p99 of direct, one by one", _p99, 1.5, at_least=False),
    Target("lone caller: median, more than direct", _added_latency, 60.0, at_least=False, unit="µs"),
    Target("longest stall at full rate", _stall, 250.0, False, "ms", (TDS5.key,), _stall_seconds),
    Target("memory for 120 busy connections", _memory, 100.0, False, "MB", (TDS5.key,)),
    Target("values/s as columns grow to 250, least step", _steps, 1.0, contenders=(TDS5.key,)),
    Target("rows/s read ÷ binary COPY", _reads, 0.5),
)


def verdicts(results: Results) -> Iterator[Verdict]:
    """What came of each target."""
    for target in TARGETS:
        measured = {contender: target.figure(results, contender) for contender in target.contenders}
        yield Verdict(target, measured, target.remark(results))
