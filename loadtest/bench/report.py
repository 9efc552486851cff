"""What a person reads: the figures of a run as tables."""

from collections.abc import Iterator

from ringlog.loadtest.bench.load import CONTENDERS, DIRECT, GATEWAY
from ringlog.loadtest.bench.reading import COPY
from ringlog.loadtest.bench.results import Results, median
from ringlog.loadtest.bench.tables import Table
from ringlog.loadtest.bench.targets import verdicts

_MISSING = "-"


def tables(results: Results) -> Iterator[Table]:
    """The tables of everything that was measured, the targets first."""
    yield _targets(results)
    if results.of("write", DIRECT.key):
        yield _speeds(results)
        yield _costs(results)
    if results.of("lone", DIRECT.key):
        yield _lone(results)
    if widths := results.columns("columns"):
        yield _columns(results, widths)
    if results.readings:
        yield _reads(results)


def heading(results: Results) -> list[str]:
    """Lines that say what was run, on what, and what came of the check."""
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


def markdown(results: Results, pictures: list[str]) -> str:
    """The whole report."""
    parts = ["# ringlog bench\n", "\n".join(f"* {line}" for line in heading(results)) + "\n"]
    parts += [table.markdown() for table in tables(results)]
    parts += [f"![{picture}]({picture})\n" for picture in pictures]
    return "\n".join(parts)


def _number(figure: float | None, digits: int = 0, unit: str = "") -> str:
    if figure is None:
        return _MISSING
    return f"{figure:,.{digits}f}" + (f" {unit}" if unit else "")


def _milliseconds(seconds: float | None) -> str:
    return _MISSING if seconds is None else _number(seconds * 1e3, 2, "ms")


def _microseconds(seconds: float | None) -> str:
    return _MISSING if seconds is None else _number(seconds * 1e6, 1, "µs")


def _targets(results: Results) -> Table:
    rows = []
    for verdict in verdicts(results):
        target = verdict.target
        bound = (
            f"{'≥' if target.at_least else '≤'} {_number(target.bound, 0 if target.unit else 2, target.unit)}"
        )
        measured = [
            _number(verdict.measured.get(one.key), 1 if target.unit else 2, target.unit) for one in GATEWAY
        ]
        remark = f" ({verdict.remark})" if verdict.remark else ""
        rows.append([target.title + remark, bound, *measured, verdict.text])
    return Table("Targets", ["figure", "target", "TDS 5.0", "TDS 7.4", "verdict"], rows)


def _speeds(results: Results) -> Table:
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
    return Table("Writing at full rate", ["", "calls/s", "values/s", "p50", "p99", "p99.9", "longest"], rows)


def _costs(results: Results) -> Table:
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
    return Table(
        "What a call costs: CPU, WAL (others: cores taken by other processes meanwhile)",
        ["", "backends", "background", "gateway", "server", "clients", "WAL", "others"],
        rows,
    )


def _lone(results: Results) -> Table:
    rows = []
    for one in (DIRECT, *GATEWAY):
        quantiles = (
            results.median(lambda of, name=name: float(getattr(of, name)), "lone", one.key)  # type: ignore[misc]
            for name in ("p50", "p99")
        )
        rows.append([one.title, *(_microseconds(quantile) for quantile in quantiles)])
    return Table("A lone caller", ["", "p50", "p99"], rows)


def _columns(results: Results, widths: list[int]) -> Table:
    contenders = [one for one in CONTENDERS.values() if results.of("columns", one.key)]
    rows = []
    for columns in widths:
        row = [f"{columns}"]
        for one in contenders:
            rate = results.median(lambda of: of.rate, "columns", one.key, columns)
            values = results.median(lambda of: of.values, "columns", one.key, columns)
            row += [_number(rate), _MISSING if values is None else f"{values / 1e6:.3f} M"]
        rows.append(row)
    headings = [f"{one.title}: {what}" for one in contenders for what in ("rows/s", "values/s")]
    return Table("Columns of a table", ["columns", *headings], rows)


def _reads(results: Results) -> Table:
    titles = {one.key: one.title for one in GATEWAY} | {COPY: "psycopg, binary COPY"}
    rows = []
    for key, title in titles.items():
        found = [one for one in results.readings if one.contender == key]
        costs = (
            median(getattr(one, who) / one.rows for one in found) for who in ("postgres", "gateway", "client")
        )
        rate, size = median(one.rate for one in found), median(one.bytes / one.rows for one in found)
        rows.append([title, _number(rate), _number(size, 0, "B"), *map(_microseconds, costs)])
    return Table(
        "Reading the log",
        ["", "rows/s", "a row", "PostgreSQL, a row", "gateway, a row", "client, a row"],
        rows,
    )
