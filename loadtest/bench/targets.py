"""The targets of the benchmark: the measured value of each, and whether it is met."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ringlog.loadtest.bench.load import DIRECT, GATEWAY, PIPELINED, TDS5, TDS74, Measurement
from ringlog.loadtest.bench.reading import COPY
from ringlog.loadtest.bench.results import Results, median
from ringlog.loadtest.bench.text import median_ratio

MEGABYTE = 1e6


@dataclass(frozen=True)
class Target:
    """A bound for a figure of each of `contenders`, by its key; None: it was not measured."""

    title: str
    figure: Callable[[Results, str], float | None]
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


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _rate(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate, "write", contender),
        results.median(lambda one: one.rate, "write", DIRECT.key),
    )


def _by_cpu(results: Results, other: str, cost: Callable[[Measurement], float]) -> str:
    """The same ratio from the CPU of a call: what it would be on an otherwise idle machine."""
    than = results.median(lambda one: one.each(cost(one)), "write", other)
    ratios = [
        _ratio(than, results.median(lambda one: one.each(cost(one)), "write", one.key)) for one in GATEWAY
    ]
    ratios_by_cpu = [f"{ratio:.2f}" for ratio in ratios if ratio is not None]
    return f"by CPU {', '.join(ratios_by_cpu)}" if ratios_by_cpu else ""


def _rate_by_cpu(results: Results) -> str:
    ratios_by_cpu = _by_cpu(results, DIRECT.key, lambda one: one.server + one.clients)
    return f"aim 1.25; {ratios_by_cpu}" if ratios_by_cpu else "aim 1.25"


def _limit_by_cpu(results: Results) -> str:
    return _by_cpu(results, PIPELINED.key, lambda one: one.server)


def _of_the_limit(results: Results, contender: str) -> float | None:
    return _ratio(
        results.median(lambda one: one.rate_without_clients, "write", contender),
        results.median(lambda one: one.rate_without_clients, "write", PIPELINED.key),
    )


def _own_cpu(results: Results, contender: str) -> float | None:
    return results.median(lambda one: one.gateway_share, "write", contender)


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


def _waveforms(
    figure: Callable[[Measurement], float | None], other: str | None
) -> Callable[[Results, str], float | None]:
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


def _waveforms_by_cpu(results: Results) -> str:
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


def _waveforms_read(results: Results, contender: str) -> float | None:
    found = results.waveforms.readings if results.waveforms else []
    ratios = [
        _ratio(
            median(one.rate for one in found if (one.contender, one.columns) == (contender, points)),
            median(one.rate for one in found if (one.contender, one.columns) == (COPY, points)),
        )
        for points in sorted({one.columns for one in found})
    ]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def _beside_waveforms(results: Results, contender: str) -> float | None:
    small = results.waveforms.small if results.waveforms else []
    return _ratio(
        *(
            median(one.p99 for one in small if (one.part, one.contender) == (part, contender))
            for part in ("beside", "alone")
        )
    )


def _beside_waveforms_direct(results: Results) -> str:
    direct = _beside_waveforms(results, DIRECT.key)
    return "" if direct is None else f"straight to PostgreSQL {direct:.2f}"


def _text_ratio(results: Results, contender: str) -> float | None:
    """The worst of the usual texts."""
    texts = {one.text for one in results.timings}
    ratios = [median_ratio(results.timings, text) for text in texts]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _compiling(*texts: str) -> Callable[[Results, str], float | None]:
    def slowest(results: Results, contender: str) -> float | None:
        return max((one.seconds * 1e6 for one in results.compiling if one.text in texts), default=None)

    return slowest


def _fetched(
    form: str, clients: int, figure: str, unit: float = 1.0
) -> Callable[[Results, str], float | None]:
    def best(results: Results, contender: str) -> float | None:
        found = [one for one in results.fetching if one.form == form and one.clients == clients]
        return max((getattr(one, figure) / unit for one in found), default=None)

    return best


def _slowest_form(results: Results, contender: str) -> float | None:
    return min((one.rate for one in results.fetching if one.clients == 1), default=None)


def _beside_http(results: Results, contender: str) -> float | None:
    """p99 of writers beside readers over HTTP ÷ their p99 alone."""
    return _ratio(
        *(
            median(one.writing.p99 for one in results.beside_http if (one.readers > 0) == reads)
            for reads in (True, False)
        )
    )


def _beside_archive(results: Results, contender: str) -> float | None:
    """p99 of writers beside the archive ÷ their p99 alone."""
    return _ratio(
        *(
            median(one.writing.p99 for one in results.beside_archive if one.archiving == archiving)
            for archiving in (True, False)
        )
    )


def _beside_texts(results: Results, contender: str) -> float | None:
    """How much longer the longest wait of a put is beside texts than alone, in milliseconds."""
    beside, alone = (
        median(one.writing.max for one in results.beside if (one.texts > 0) == sends)
        for sends in (True, False)
    )
    return None if beside is None or alone is None else (beside - alone) * 1000


def _kept(name: str) -> Callable[[Results, str], float | None]:
    return lambda results, _: median(one.amount for one in results.kept if one.name == name)


def _slowest_trend(signals: int) -> Callable[[Results, str], float | None]:
    def figure(results: Results, _: str) -> float | None:
        begin = f"trend {signals} "
        return max((one.amount for one in results.kept if one.name.startswith(begin)), default=None)

    return figure


_FILE_OF_HALF, _FILE_OF_SPRING8 = _kept("file of HALF's load"), _kept("file of SPring-8's reals")

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
    Target("a usual text, repeated: time ÷ psycopg's, worst", _text_ratio, 1.3, False, "", (TDS74.key,)),
    Target("a usual select read and translated", _compiling("key", "join"), 100.0, False, "µs", (TDS74.key,)),
    Target("200 columns read and translated", _compiling("wide"), 1000.0, False, "µs", (TDS74.key,)),
    Target(
        "longest put beside 1,000 new texts/s, more than alone", _beside_texts, 5.0, False, "ms", (TDS5.key,)
    ),
    Target(
        "waveforms: MB/s ÷ direct inserts, worst",
        _waveforms(lambda one: one.rate, DIRECT.key),
        0.8,
        remark=_waveforms_by_cpu,
    ),
    Target(
        "waveforms: gateway CPU ÷ CPU of PostgreSQL's backends, worst",
        _waveforms(lambda one: one.gateway_share, None),
        0.25,
        at_least=False,
    ),
    Target("waveforms read ÷ binary COPY, worst", _waveforms_read, 0.8),
    Target(
        "p99 of small rows beside waveforms ÷ alone",
        _beside_waveforms,
        3.0,
        False,
        "",
        (TDS5.key,),
        _beside_waveforms_direct,
    ),
    # papers/003 reached 118 MB/s of CSV: its network's 1 Gb/s
    Target("CSV by one client", _fetched("csv", 1, "speed", MEGABYTE), 118.0, True, "MB/s", (TDS5.key,)),
    Target("Arrow by one client", _fetched("rows", 1, "speed", MEGABYTE), 500.0, True, "MB/s", (TDS5.key,)),
    Target(
        "Arrow by one client, waveforms",
        _fetched("waveforms, arrow", 1, "speed", MEGABYTE),
        500.0,
        True,
        "MB/s",
        (TDS5.key,),
    ),
    Target("Arrow by one client, rows", _fetched("rows", 1, "rate"), 1e7, True, "values/s", (TDS5.key,)),
    Target("the slowest form by one client", _slowest_form, 1.4e6, True, "values/s", (TDS5.key,)),
    Target("a trend of one signal, slowest", _slowest_trend(1), 5.0, False, "ms", (TDS5.key,)),
    Target("a trend of ten signals, slowest", _slowest_trend(10), 25.0, False, "ms", (TDS5.key,)),
    Target("a value of HALF's load in a file", _FILE_OF_HALF, 2.3, False, "bytes", (TDS5.key,)),
    Target("a value of SPring-8's reals in a file", _FILE_OF_SPRING8, 1.2, False, "bytes", (TDS5.key,)),
    Target(
        "a file read as a whole", _kept("reading SPring-8's reals"), 100.0, True, "M values/s", (TDS5.key,)
    ),
    Target(
        "one signal of a file",
        _kept("reading one signal of SPring-8's reals"),
        10.0,
        True,
        "M values/s",
        (TDS5.key,),
    ),
    # "writers' p99 does not move": what a median of a few rounds says of that
    Target("p99 of puts beside the archive ÷ alone", _beside_archive, 1.1, False, "", (TDS74.key,)),
    Target("p99 of puts beside 100 readers ÷ alone", _beside_http, 2.0, False, "", (TDS74.key,)),
    Target(
        "memory of 100 readers", _fetched("csv", 100, "memory", MEGABYTE), 500.0, False, "MB", (TDS5.key,)
    ),
)


def verdicts(results: Results) -> Iterator[Verdict]:
    """The outcome of each target."""
    for target in TARGETS:
        measured = {contender: target.figure(results, contender) for contender in target.contenders}
        yield Verdict(target, measured, target.remark(results))
