"""Compares a run with an earlier one."""

from collections.abc import Callable, Iterator

from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.bench.reports.results import Results, median
from ringlog_lab.bench.reports.targets import verdicts
from ringlog_lab.native_load import CONTENDERS, Measurement

_FIGURES: dict[str, Callable[[Measurement], float]] = {
    "calls/s": lambda one: one.rate,
    "p50, ms": lambda one: one.p50 * 1e3,
    "p99, ms": lambda one: one.p99 * 1e3,
    "CPU of backends, µs a call": lambda one: one.each(one.backends) * 1e6,
    "CPU of the gateway, µs a call": lambda one: one.each(one.gateway) * 1e6,
    "WAL, bytes a call": lambda one: one.each(one.wal),
}


def compare(old: Results, new: Results) -> TextTable:
    """The figures of both runs, ratios first: these can be compared between machines, the others cannot."""
    rows = [
        [name, _text(one), _text(other), f"{100 * (other - one) / abs(one):+.1f} %" if one else ""]
        for name, one, other in _pairs(old, new)
    ]
    return TextTable(f"Beside {old.commit}, {old.started}", ["", "then", "now", "change"], rows)


def _pairs(old: Results, new: Results) -> Iterator[tuple[str, float, float]]:
    for before, after in zip(verdicts(old), verdicts(new), strict=True):
        for key, now in after.measured.items():
            then = before.measured.get(key)
            if then is not None and now is not None:
                unit = f", {after.target.unit}" if after.target.unit else ""
                yield f"{after.target.title}{unit} ({CONTENDERS[key].title})", then, now
    for key, one in CONTENDERS.items():
        for name, figure in _FIGURES.items():
            then, now = (results.median(figure, "write", key) for results in (old, new))
            if then is not None and now is not None:
                yield f"{one.title}: {name}", then, now
    then, now = (median(one.others / one.seconds for one in results.measurements) for results in (old, new))
    if then is not None and now is not None:
        yield "cores taken by other processes", then, now


def _text(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3g}"
