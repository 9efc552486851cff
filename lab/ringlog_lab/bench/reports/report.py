"""The report of a run: its figures as tables."""

from collections.abc import Iterable, Iterator

from ringlog.loadtest.experiment.facility import main_tables
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.bench.reading import COPY
from ringlog_lab.bench.reports.results import Results, median
from ringlog_lab.bench.reports.targets import verdicts
from ringlog_lab.bench.text import CANNED, PSYCOPG, PYMSSQL, median_ratio, median_time, usual
from ringlog_lab.native_load import CONTENDERS, DIRECT, GATEWAY
from ringlog_lab.record import Figure

_MISSING = "-"
_STALLS = (0.250, 0.100, 0.060)
_HARDLY_STOLEN = 0.05
"""seconds of CPU in one second: too little to explain a long wait"""


def tables(results: Results) -> Iterator[TextTable]:
    """The tables of all measurements, the targets first."""
    targets = _targets(results)
    if targets.rows:
        yield targets
    if results.of("write", DIRECT.key):
        yield _speeds(results)
        yield _costs(results)
    if results.of("lone", DIRECT.key):
        yield _lone(results)
    if results.readings:
        yield _reads(results)
    if results.timings:
        yield _texts(results)
        yield _compiling(results)
    if results.kept:
        yield _figures("Ten years, and HALF's load", results.kept)
    yield from _disturbed(results)
    if results.old_weeks:
        yield _figures(f"{results.options['weeks']} archived weeks", results.old_weeks)
    if results.of("stall", DIRECT.key):
        yield _stalls(results)


def heading(results: Results) -> list[str]:
    """Lines with the programs, the machine, and the outcome of the check."""
    machine, options = results.machine, results.options
    lines = [
        f"ringlog {results.commit}, {results.started}",
        f"{machine['processor']}, {machine['cores']} cores, {float(machine['memory']) / 2**30:.0f} GiB, "
        f"{machine['system']}, data on {machine['file_system']}",
        f"PostgreSQL {results.settings.get('server_version', '?')}, "
        + ", ".join(
            f"{name} {value}" for name, value in results.settings.items() if name != "server_version"
        ),
        f"{options['connections']} connections, {options['columns']} real columns, "
        f"{options['rounds']} rounds of {options['seconds']:g} s, medians over the rounds",
    ]
    others = median(one.others / one.seconds for one in results.measurements)
    if others is not None:
        lines.append(f"other processes of the machine took {others:.2f} cores meanwhile (median)")
    if results.check is not None:
        check = results.check
        lines.append(
            f"{check.acknowledged} calls acknowledged, {check.stored} rows in the logs, "
            f"{check.compared} values compared"
        )
    return lines


def markdown(results: Results) -> str:
    parts = ["# ringlog bench\n", "\n".join(f"* {line}" for line in heading(results)) + "\n"]
    parts += [f"## {table.caption}\n\n{table.markdown()}\n" for table in tables(results)]
    return "\n".join(parts)


def _number(figure: float | None, digits: int = 0, unit: str = "") -> str:
    if figure is None:
        return _MISSING
    return f"{figure:,.{digits}f}" + (f" {unit}" if unit else "")


def _milliseconds(seconds: float | None) -> str:
    return _MISSING if seconds is None else _number(seconds * 1e3, 2, "ms")


def _microseconds(seconds: float | None) -> str:
    return _MISSING if seconds is None else _number(seconds * 1e6, 1, "µs")


def _targets(results: Results) -> TextTable:
    rows = []
    for verdict in verdicts(results):
        target = verdict.target
        if verdict.met is None:
            continue
        bound = " ".join(
            ["≥" if target.at_least else "≤", f"{target.bound:,}".removesuffix(".0"), target.unit]
        )
        measured = [
            _number(verdict.measured.get(one.key), 1 if target.unit else 2, target.unit) for one in GATEWAY
        ]
        remark = f" ({verdict.remark})" if verdict.remark else ""
        rows.append([target.title + remark, bound.rstrip(), *measured, verdict.text])
    return TextTable("Targets", ["figure", "target", "TDS 5.0", "TDS 7.4", "verdict"], rows)


def _speeds(results: Results) -> TextTable:
    def row(key: str) -> list[str]:
        def of(figure: str) -> float | None:
            return results.median(lambda one: float(getattr(one, figure)), "write", key)

        values = of("values")
        return [
            _number(of("rate")),
            _MISSING if values is None else f"{values / 1e6:.2f} M",
            *(_milliseconds(of(figure)) for figure in ("p50", "p99", "p999", "max")),
        ]

    rows = [[one.title, *row(one.key)] for one in CONTENDERS.values()]
    return TextTable(
        "Writing at full rate", ["", "calls/s", "values/s", "p50", "p99", "p99.9", "longest"], rows
    )


def _costs(results: Results) -> TextTable:
    def row(key: str) -> list[str]:
        def of(cost: str) -> float | None:
            return results.median(lambda one: one.each(getattr(one, cost)), "write", key)

        others = results.median(lambda one: one.others / one.seconds, "write", key)
        return [
            *(_microseconds(of(who)) for who in ("backends", "background", "gateway", "server", "clients")),
            _number(of("wal"), 0, "B"),
            _number(others, 2),
        ]

    rows = [[one.title, *row(one.key)] for one in CONTENDERS.values()]
    return TextTable(
        "Cost of a call: CPU, WAL (others: cores used by other processes meanwhile)",
        ["", "backends", "background", "gateway", "server", "clients", "WAL", "others"],
        rows,
    )


def _lone(results: Results) -> TextTable:
    rows = []
    for one in (DIRECT, *GATEWAY):
        quantiles = (
            results.median(lambda of, name=name: float(getattr(of, name)), "lone", one.key)  # type: ignore[misc]
            for name in ("p50", "p99")
        )
        rows.append([one.title, *(_microseconds(quantile) for quantile in quantiles)])
    return TextTable("A lone caller", ["", "p50", "p99"], rows)


def _reads(results: Results) -> TextTable:
    titles = {one.key: one.title for one in GATEWAY} | {COPY: "psycopg, binary COPY"}
    rows = []
    for key, title in titles.items():
        found = [one for one in results.readings if one.contender == key]
        costs = (
            median(getattr(one, who) / one.rows for one in found) for who in ("postgres", "gateway", "client")
        )
        rate, size = median(one.rate for one in found), median(one.bytes / one.rows for one in found)
        rows.append([title, _number(rate), _number(size, 0, "B"), *map(_microseconds, costs)])
    return TextTable(
        "Reading the log",
        ["", "rows/s", "a row", "PostgreSQL, a row", "gateway, a row", "client, a row"],
        rows,
    )


_WORK = {
    "texts": ("A writer at 50 calls/s, and 20 connections whose texts all differ", "texts/s"),
    "archive": ("{} writers, 5 calls/s each, and the archiving of a week", "week"),
}
"""Titles, and the units of the work's amount."""


def _disturbed(results: Results) -> Iterator[TextTable]:
    for work, (title, unit) in _WORK.items():
        rows = []
        for alone in (True, False):
            found = results.during(work, alone=alone)
            writing = [one.writing for one in found]
            times = (median(getattr(one, name) for one in writing) for name in ("p50", "p99", "max"))
            row = ["alone" if alone else f"{_number(median(one.amount for one in found))} {unit}"]
            row += [
                *map(_milliseconds, times),
                _number(median(one.others / one.seconds for one in writing), 2),
            ]
            rows.append(row)
        headings = ["", "p50", "p99", "longest", "others' cores"]
        if results.during(work):
            yield TextTable(title.format(results.options.get("connections")), headings, rows)


def _figures(title: str, figures: Iterable[Figure]) -> TextTable:
    return TextTable(title, ["", "median"], [[one.name, _number(one.amount, 2, one.unit)] for one in figures])


def _titles(results: Results) -> dict[str, str]:
    return {one.key: one.title for one in usual(main_tables(int(results.options["columns"])))}


def _texts(results: Results) -> TextTable:
    rows = []
    for key, title in _titles(results).items():
        row = [title]
        for contender in (PYMSSQL, PSYCOPG):
            found = [one for one in results.timings if (one.text, one.contender) == (key, contender)]
            row += [_microseconds(median(getattr(one, name) for one in found)) for name in ("p50", "p99")]
        canned = median_time(results.timings, key, CANNED)
        row.append(_MISSING if canned is None else _microseconds(canned))
        ratios = (median_ratio(results.timings, key, one) for one in (PYMSSQL, CANNED))
        rows.append([*row, *(_number(ratio, 2) for ratio in ratios)])
    headings = [f"{who}, {which}" for who in ("pymssql", "psycopg") for which in ("median", "p99")]
    headings += ["pymssql, canned answer", "pymssql ÷ psycopg", "canned ÷ psycopg"]
    return TextTable("Texts by one client", ["", *headings], rows)


def _compiling(results: Results) -> TextTable:
    titles = _titles(results)
    rows = [[titles[one.text], f"{one.count}", _microseconds(one.seconds)] for one in results.compiling]
    return TextTable("Texts read and translated", ["", "texts", "each"], rows)


def _stalls(results: Results) -> TextTable:
    rows = []
    for one in CONTENDERS.values():
        spans = results.of("stall", one.key)
        longest = [time for span in spans for _, time in span.by_second]
        if not longest:
            continue
        # nothing is known about an unfinished second
        with_stolen = [pair for span in spans for pair in zip(span.by_second, span.stolen, strict=False)]
        quiet = [time for (_, time), stolen in with_stolen if stolen < _HARDLY_STOLEN]
        rows.append(
            [
                one.title,
                _number(results.median(lambda span: span.rate, "stall", one.key)),
                _milliseconds(median(longest)),
                _milliseconds(max(longest)),
                *(_share(longest, bound) for bound in _STALLS),
                _share(quiet, _STALLS[-1]),
            ]
        )
    headings = ["calls/s", "longest of a second: median", "greatest"]
    headings += [f"seconds above {bound * 1e3:.0f} ms" for bound in _STALLS]
    headings.append(f"of those where the host took less than {_HARDLY_STOLEN * 1e3:.0f} ms")
    return TextTable("Stalls at full rate, in turns", ["", *headings], rows)


def _share(longest: list[float], bound: float) -> str:
    return f"{sum(time > bound for time in longest)} of {len(longest)}"
