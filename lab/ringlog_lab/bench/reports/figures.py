"""The figures that targets bound, each from the results of a run; None: it was not measured."""

from collections.abc import Callable

from ringlog_lab.bench.reading import COPY
from ringlog_lab.bench.reports.results import Results, median
from ringlog_lab.bench.text import median_ratio
from ringlog_lab.native_load import DIRECT, GATEWAY, PIPELINED, TDS5, Measurement

FigureOf = Callable[[Results, str], float | None]
"""of the contender with this key"""
MEGABYTE = 1e6


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def rate(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate, "write", contender),
        results.median(lambda one: one.rate, "write", DIRECT.key),
    )


def _by_cpu(results: Results, other: str, cost: Callable[[Measurement], float]) -> str:
    """The same ratio from the CPU of a call: the expected ratio on an otherwise idle machine."""
    than = results.median(lambda one: one.each(cost(one)), "write", other)
    ratios = [
        _ratio(than, results.median(lambda one: one.each(cost(one)), "write", one.key)) for one in GATEWAY
    ]
    ratios_by_cpu = [f"{ratio:.2f}" for ratio in ratios if ratio is not None]
    return f"by CPU {', '.join(ratios_by_cpu)}" if ratios_by_cpu else ""


def rate_by_cpu(results: Results) -> str:
    ratios_by_cpu = _by_cpu(results, DIRECT.key, lambda one: one.server + one.clients)
    return f"aim 1.25; {ratios_by_cpu}" if ratios_by_cpu else "aim 1.25"


def limit_by_cpu(results: Results) -> str:
    return _by_cpu(results, PIPELINED.key, lambda one: one.server)


def of_the_limit(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate_without_clients, "write", contender),
        results.median(lambda one: one.rate_without_clients, "write", PIPELINED.key),
    )


def own_cpu(results: Results, contender: str) -> float | None:
    return results.median(lambda one: one.gateway_share, "write", contender)


def p99(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.p99, "write", contender),
        results.median(lambda one: one.p99, "write", DIRECT.key),
    )


def added_latency(results: Results, contender: str) -> float | None:
    through = results.median(lambda one: one.p50, "lone", contender)
    direct = results.median(lambda one: one.p50, "lone", DIRECT.key)
    return None if through is None or direct is None else (through - direct) * 1e6


def stall(results: Results, contender: str) -> float | None:
    longest = max((one.max for one in results.of("stall", contender)), default=None)
    return None if longest is None else longest * 1000


def stall_seconds(results: Results) -> str:
    seconds = sum(one.seconds for one in results.of("stall", TDS5.key))
    direct = stall(results, DIRECT.key)
    return "" if direct is None else f"in {seconds:.0f} s; {direct:,.1f} ms of direct, one by one"


def memory(results: Results, contender: str) -> float | None:
    busy = results.median(lambda one: one.memory, "memory", contender)
    return None if busy is None or results.idle_memory is None else (busy - results.idle_memory) / MEGABYTE


def reads(results: Results, contender: str) -> float | None:
    return _ratio(results.reading_rate(contender), results.reading_rate(COPY))


def text_ratio(results: Results, contender: str) -> float | None:
    """The worst of the usual texts."""
    texts = {one.text for one in results.timings}
    ratios = [median_ratio(results.timings, text) for text in texts]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def compiling(*texts: str) -> FigureOf:
    def slowest(results: Results, contender: str) -> float | None:
        return max((one.seconds * 1e6 for one in results.compiling if one.text in texts), default=None)

    return slowest


def p99_during(work: str) -> FigureOf:
    """p99 of writers during a work ÷ their p99 alone."""

    def figure(results: Results, _: str) -> float | None:
        during, alone = (results.during(work, alone=alone) for alone in (False, True))
        return _ratio(*(median(one.writing.p99 for one in found) for found in (during, alone)))

    return figure


def longest_during_texts(results: Results, contender: str) -> float | None:
    """The longest wait of a put during texts minus that alone, in milliseconds."""
    during, alone = (
        median(one.writing.max for one in results.during("texts", alone=alone)) for alone in (False, True)
    )
    return None if during is None or alone is None else (during - alone) * 1000


def kept(name: str) -> FigureOf:
    return lambda results, _: median(one.amount for one in results.kept if one.name == name)


def old_weeks(name: str) -> FigureOf:
    """The worst of the figures whose names begin so."""
    return lambda results, _: max(
        (one.amount for one in results.old_weeks if one.name.startswith(name)), default=None
    )


def slowest_trend(signals: int) -> FigureOf:
    def figure(results: Results, _: str) -> float | None:
        begin = f"trend {signals} "
        return max((one.amount for one in results.kept if one.name.startswith(begin)), default=None)

    return figure
