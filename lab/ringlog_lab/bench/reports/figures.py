"""The figures that targets bound, each from the results of a run; None: it was not measured."""

from collections.abc import Callable
from itertools import pairwise

from ringlog_lab.bench.mixed import Mixed
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


def steps(results: Results, contender: str) -> float | None:
    """The minimum of values/s at a number of columns ÷ values/s at the previous number."""
    widths = [columns for columns in results.columns("columns") if columns <= 250]
    values = [results.median(lambda one: one.values, "columns", contender, columns) for columns in widths]
    steps = [_ratio(wider, narrower) for narrower, wider in pairwise(values)]
    return min((step for step in steps if step is not None), default=None)


def reads(results: Results, contender: str) -> float | None:
    return _ratio(results.reading_rate(contender), results.reading_rate(COPY))


def waveforms(figure: Callable[[Measurement], float | None], other: str | None) -> FigureOf:
    """The worst over the numbers of points: a figure ÷ that of `other`, or a figure that is a ratio."""

    def worst(results: Results, contender: str) -> float | None:
        ratios = [
            _ratio(
                results.median(figure, "waveforms", contender, points),
                results.median(figure, "waveforms", other, points) if other else 1.0,
            )
            for points in results.columns("waveforms")
        ]
        known = [ratio for ratio in ratios if ratio is not None]
        return (min if other else max)(known, default=None)

    return worst


def waveforms_by_cpu(results: Results) -> str:
    """The same from the CPU that the server spends on a call."""
    ratios_by_cpu = []
    for one in GATEWAY:
        ratios = [
            _ratio(
                results.median(lambda of: of.each(of.server), "waveforms", DIRECT.key, points),
                results.median(lambda of: of.each(of.server), "waveforms", one.key, points),
            )
            for points in results.columns("waveforms")
        ]
        known = [ratio for ratio in ratios if ratio is not None]
        ratios_by_cpu += [f"{min(known):.2f}"] if known else []
    return f"by the server's CPU {', '.join(ratios_by_cpu)}" if ratios_by_cpu else ""


def waveforms_read(results: Results, contender: str) -> float | None:
    found = results.waveforms.readings if results.waveforms else []
    ratios = [
        _ratio(
            median(one.rate for one in found if (one.contender, one.columns) == (contender, points)),
            median(one.rate for one in found if (one.contender, one.columns) == (COPY, points)),
        )
        for points in sorted({one.columns for one in found})
    ]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def beside_waveforms(results: Results, contender: str) -> float | None:
    small = results.waveforms.small if results.waveforms else []
    return _ratio(
        *(
            median(one.p99 for one in small if (one.part, one.contender) == (part, contender))
            for part in ("beside", "alone")
        )
    )


def beside_waveforms_direct(results: Results) -> str:
    direct = beside_waveforms(results, DIRECT.key)
    return "" if direct is None else f"straight to PostgreSQL {direct:.2f}"


def text_ratio(results: Results, contender: str) -> float | None:
    """The worst of the usual texts."""
    texts = {one.text for one in results.timings}
    ratios = [median_ratio(results.timings, text) for text in texts]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def compiling(*texts: str) -> FigureOf:
    def slowest(results: Results, contender: str) -> float | None:
        return max((one.seconds * 1e6 for one in results.compiling if one.text in texts), default=None)

    return slowest


def fetched(form: str, clients: int, figure: str, unit: float = 1.0) -> FigureOf:
    def best(results: Results, contender: str) -> float | None:
        found = [one for one in results.fetching if one.form == form and one.clients == clients]
        return max((getattr(one, figure) / unit for one in found), default=None)

    return best


def slowest_form(results: Results, contender: str) -> float | None:
    return min((one.rate for one in results.fetching if one.clients == 1), default=None)


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


def _stands_beside_readers(results: Results) -> set[tuple[int, int]]:
    return {(one.readers, one.nice) for _, one in results.mixed if one.readers}


def _beside_readers(
    results: Results,
    contender: str,
    part: str | None,
    stand: tuple[int, int],
    figure: Callable[[Mixed], float],
) -> float | None:
    return median(
        figure(one)
        for key, one in results.mixed
        if key == contender
        and (one.readers, one.nice) == stand
        and (one.writing and one.writing.part) == part
    )


def beside_readers_to_direct(
    part: str | None, figure: Callable[[Mixed], float], worst: Callable[..., float | None]
) -> FigureOf:
    """The worst over the numbers of readers and their nice values: a figure ÷ direct's beside the same."""

    def found(results: Results, contender: str) -> float | None:
        ratios = [
            _ratio(
                _beside_readers(results, contender, part, stand, figure),
                _beside_readers(results, DIRECT.key, part, stand, figure),
            )
            for stand in _stands_beside_readers(results)
        ]
        return worst((ratio for ratio in ratios if ratio is not None), default=None)

    return found


def lone_beside_readers(readers: int, nice: int) -> FigureOf:
    """p99 of one writer, in milliseconds."""

    def found(results: Results, contender: str) -> float | None:
        def p99(one: Mixed) -> float:
            return one.writing.p99 * 1000 if one.writing else 0.0

        return _beside_readers(results, contender, "mixed lone", (readers, nice), p99)

    return found


def longest_lone_beside_readers(results: Results, contender: str) -> float | None:
    """The longest wait of one writer beside any readers, in milliseconds."""
    waits = [
        one.writing.max * 1000
        for key, one in results.mixed
        if key == contender and one.readers and one.writing and one.writing.part == "mixed lone"
    ]
    return max(waits, default=None)


def longest_wait_of_a_reader(results: Results, contender: str) -> float | None:
    return max((one.longest for key, one in results.mixed if key == contender and one.readers), default=None)
