"""The pictures of a run."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ringlog_lab.bench.reports.results import Results
from ringlog_lab.native_load import CONTENDERS, Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"direct": "#4477aa", "pipelined": "#66ccee", "tds5": "#ee6677", "tds74": "#ccbb44"}
_QUANTILES: dict[str, Callable[[Measurement], float]] = {
    "p50": lambda one: one.p50,
    "p99": lambda one: one.p99,
    "p99.9": lambda one: one.p999,
}


def draw(results: Results, folder: Path) -> list[str]:
    """Draws the measurements into PNG files of a folder and returns their names."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    pictures = {"write": _contenders, "columns": _columns, "stall": _stall}
    drawn = []
    for part, picture in pictures.items():
        if results.columns(part):
            drawn.append(f"{part}.png")
            picture(results, folder / drawn[-1])
    return drawn


def _contenders(results: Results, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    speed, latency = figure.subplots(1, 2)
    shown = [one for one in CONTENDERS.values() if results.of("write", one.key)]
    for place, one in enumerate(shown):
        rounds = results.of("write", one.key)
        rate = results.median(lambda each: each.rate, "write", one.key) or 0.0
        speed.bar(place, rate, color=_COLOURS[one.key], width=0.7)
        speed.plot([place] * len(rounds), [each.rate for each in rounds], ".", color="black", markersize=4)
        speed.annotate(f"{rate:,.0f}", (place, rate), ha="center", va="bottom", fontsize=9)
        times = [(results.median(of, "write", one.key) or 0.0) * 1e3 for of in _QUANTILES.values()]
        places = [number + 0.2 * place for number in range(len(times))]
        latency.bar(places, times, width=0.18, color=_COLOURS[one.key], label=one.title)
    speed.set_xticks(range(len(shown)), [one.title.replace(", ", ",\n") for one in shown], fontsize=8)
    speed.set_ylabel("calls/s (dots: rounds)")
    latency.set_xticks([number + 0.3 for number in range(len(_QUANTILES))], [*_QUANTILES])
    latency.set_yscale("log")
    latency.set_ylabel("ms")
    latency.margins(y=0.25)
    latency.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    for panel in (speed, latency):
        _plain(panel)
    columns, connections = results.options["columns"], results.options["connections"]
    figure.suptitle(f"put_<table> of {columns} reals, {connections} connections")
    figure.savefig(file, dpi=120)


def _columns(results: Results, file: Path) -> None:
    """Figure 4 of papers/004, and the same in values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    widths = results.columns("columns")
    of_panel: dict[str, Callable[[Measurement], float]] = {
        "rows/s": lambda one: one.rate,
        "values/s": lambda one: one.values,
    }
    for panel, (name, of) in zip(panels, of_panel.items(), strict=True):
        for one in CONTENDERS.values():
            if results.of("columns", one.key):
                medians = [(width, results.median(of, "columns", one.key, width)) for width in widths]
                points = [(width, figure) for width, figure in medians if figure is not None]
                panel.plot(*zip(*points, strict=True), "o-", color=_COLOURS[one.key], label=one.title)
        panel.set_xscale("log")
        panel.set_xticks(widths, [str(width) for width in widths], fontsize=8, rotation=60)
        panel.minorticks_off()
        panel.set_xlabel("columns of a table")
        panel.set_ylabel(name)
        panel.set_ylim(bottom=0)
        panel.legend(frameon=False, fontsize=8)
        _plain(panel)
    figure.suptitle("Writing speed against the number of columns")
    figure.savefig(file, dpi=120)


def _stall(results: Results, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    rate, longest = figure.subplots(2, 1, sharex=True)
    begin, labelled = 0, set[str]()
    for each in (one for one in results.measurements if one.part == "stall"):
        calls, times = zip(*each.by_second, strict=True)
        seconds = range(begin, begin + len(calls))
        begin, colour = seconds.stop, _COLOURS[each.contender]
        # a name that begins with _ is not in the legend
        title = "_" if each.contender in labelled else CONTENDERS[each.contender].title
        labelled.add(each.contender)
        rate.plot(seconds, calls, color=colour, label=title)
        longest.plot(seconds, [time * 1e3 for time in times], color=colour)
    longest.axhline(250, color="black", linewidth=0.8, linestyle="--")
    longest.set_ylabel("longest call, ms")
    longest.set_xlabel("s")
    rate.set_ylabel("calls/s")
    rate.set_ylim(bottom=0)
    rate.legend(frameon=False, fontsize=8)
    for panel in (rate, longest):
        _plain(panel)
    figure.suptitle("Each second of a long run at full rate")
    figure.savefig(file, dpi=120)


def _plain(panel: "Axes") -> None:
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
