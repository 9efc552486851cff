"""The pictures of a report."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ringlog.loadtest.spring8 import published
from ringlog.loadtest.spring8.format import KIND_NAMES, server_seconds
from ringlog.loadtest.spring8.results import CTLIB, NATIVE, PYTHON, Run, Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CLIENTS = {
    kind: (*style, KIND_NAMES[kind])
    for kind, style in {
        PYTHON: ("#4477aa", "o"),
        CTLIB: ("#228833", "^"),
        NATIVE: ("#ee6677", "s"),
    }.items()
}
# so that they differ in grey too
_DASHES = {PYTHON: "-", CTLIB: "--", NATIVE: ":"}
_PARTS = {
    "postgres": ("#4477aa", "PostgreSQL"),
    "gateway": ("#ee6677", "gateway"),
    "clients": ("#ccbb44", "clients"),
    "others": ("#bbbbbb", "other processes"),
}
_MARKERS = {"machine": "o", "postgres": "s", "gateway": "^", "clients": "x"}
_LOG, _TABLES = "#4477aa", "#ccbb44"


def _figure(width: float, height: float) -> "Figure":
    # late, since it is large and not every command draws
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: "Figure", file: Path) -> None:
    for panel in figure.axes:
        panel.grid(alpha=0.3)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110)


def _logarithmic(panel: "Axes") -> None:
    """A logarithmic axis with numbers without exponents, also if it spans less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_yscale("log")
    low, high = panel.get_ylim()
    wide = high > 1000 * low
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def normal_operation(run: Run, file: Path) -> None:
    """Figure 3: load average and CPU over time."""
    figure = _figure(9, 5)
    load, cpu = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.3))
    length, unit = _time_unit(run.seconds)
    moments = [sample.seconds / length for sample in run.samples]
    load.plot(moments, [sample.load_average for sample in run.samples], color="black", linewidth=1.2)
    load.set_ylabel("1-minute load average")
    load.set_ylim(bottom=0)
    middles, shares = _shares(run)
    shown = {part: values for part, values in shares.items() if values}
    if middles:
        cpu.stackplot(
            [moment / length for moment in middles],
            *([100 * value for value in values] for values in shown.values()),
            colors=[_PARTS[part][0] for part in shown],
            labels=[_PARTS[part][1] for part in shown],
            linewidth=0,
        )
    cpu.axhline(100 * published.CPU_SHARE, color="black", linewidth=1, linestyle="--")
    cpu.annotate(
        "the paper: its server stayed below 30 %",
        (0.995, 100 * published.CPU_SHARE + 1.5),
        xycoords=("axes fraction", "data"),
        ha="right",
        fontsize=8,
    )
    cpu.set_ylim(0, 100)
    cpu.set_xlim(0, max(moments[-1], 1 / length))
    cpu.set_ylabel(f"% of {run.cores} cores")
    cpu.set_xlabel(unit)
    handles, labels = cpu.get_legend_handles_labels()
    cpu.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _save(figure, file)


def _time_unit(seconds: float) -> tuple[float, str]:
    if seconds <= 300:
        return 1.0, "seconds"
    if seconds <= 4 * 3600:
        return 60.0, "minutes"
    return (3600.0, "hours") if seconds <= 3 * 86_400 else (86_400.0, "days")


def _shares(run: Run) -> tuple[list[float], dict[str, list[float]]]:
    """The middles of the times between samples, and each part's share of the machine in them, 0 to 1. A part
    that cannot be measured is left empty; its use is in `others` then.
    """
    middles: list[float] = []
    shares: dict[str, list[float]] = {part: [] for part in _PARTS}
    known = [part for part in _PARTS if part != "others" and getattr(run.samples[0], part) is not None]
    for one, other in zip(run.samples, run.samples[1:], strict=False):
        lasted = (other.seconds - one.seconds) * run.cores
        if lasted < 0.2 * run.cores:
            # the last one comes soon after the one before, and the kernel counts CPU in steps
            continue
        middles.append((one.seconds + other.seconds) / 2)
        taken = {part: max(0.0, _between(one, other, part) / lasted) for part in known}
        busy = _between(one, other, "machine") / lasted
        for part, value in taken.items():
            shares[part].append(value)
        shares["others"].append(max(0.0, min(1.0, busy) - sum(taken.values())))
    return middles, shares


def _between(one: Sample, other: Sample, part: str) -> float:
    return float(getattr(other, part) - getattr(one, part))


def disk(split: Sequence[tuple[str, float]], file: Path) -> None:
    """The sp_sysmon figures: the log's share of the disk I/O, by the name of the measurement."""
    figure = _figure(9, 0.55 * len(split) + 0.9)
    panel = figure.subplots()
    for place, (_, share) in enumerate(reversed(split)):
        panel.barh(place, 100 * share, color=_LOG, label="write-ahead log" if not place else None)
        panel.barh(
            place, 100 * (1 - share), left=100 * share, color=_TABLES, label=None if place else "tables"
        )
        panel.annotate(f"{100 * share:.0f} %", (1, place), va="center", color="white", fontsize=9)
    panel.set_yticks(range(len(split)), [name for name, _ in reversed(split)])
    panel.set_xlim(0, 100)
    panel.set_xlabel("% of disk I/O")
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _save(figure, file)


def seconds(runs: Sequence[Run], file: Path) -> None:
    """Each second at the highest rate."""
    figure = _figure(9, 4.6)
    rate, longest = figure.subplots(2, 1, sharex=True)
    for run in runs:
        colour, _, name = _CLIENTS[run.clients]
        whole = run.by_second[: int(run.seconds)]
        length, unit = _time_unit(run.seconds)
        moments = [(second + 0.5) / length for second in range(len(whole))]
        dash = _DASHES[run.clients]
        rate.plot(moments, [rows for rows, _ in whole], color=colour, linestyle=dash, label=name)
        longest.plot(moments, [1000 * most for _, most in whole], color=colour, linestyle=dash)
        longest.set_xlabel(unit)
    rate.set_ylabel("rows acknowledged\na second")
    rate.set_ylim(bottom=0)
    longest.set_ylabel("longest insertion\nof each second, ms")
    _logarithmic(longest)
    rate.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _save(figure, file)


def tables(runs: Sequence[Run], file: Path) -> None:
    """Figure 4 from the run of table 1: each table's rate against its number of columns."""
    figure = _figure(9, 3.8)
    panel = figure.subplots()
    for run in runs:
        colour, marker, name = _CLIENTS[run.clients]
        widths = [table.columns for table in run.tables]
        rates = [table.rows for table in run.tables]
        panel.plot(widths, rates, linestyle="none", marker=marker, markersize=4, color=colour, label=name)
    linux = published.TABLE_1[0]
    _paper(panel, 200, 1 / linux.mean)
    panel.set_xlim(left=0)
    _logarithmic(panel)
    panel.set_xlabel("data columns of the table")
    panel.set_ylabel("rows a second into one table")
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _save(figure, file)


def columns(runs: Sequence[Run], file: Path) -> None:
    """Figure 4: rows a second of 60 writers against columns, the same in kilobytes, and, if it can be
    measured, the server's cost of a row, which depends least on other work of the machine."""
    costs = any(server_seconds(run) for run in runs)
    figure = _figure(12 if costs else 9, 4)
    panels = figure.subplots(1, 3 if costs else 2)
    for kind, (colour, marker, name) in _CLIENTS.items():
        chosen = [run for run in runs if run.clients == kind]
        widths = [run.columns for run in chosen]
        values = [[run.rows for run in chosen], [run.kilobytes for run in chosen]]
        if costs:
            values.append([1e6 * (server_seconds(run) or 0.0) for run in chosen])
        for panel, heights in zip(panels if chosen else (), values, strict=False):
            panel.plot(widths, heights, color=colour, linestyle=_DASHES[kind], marker=marker, label=name)
    linux = published.TABLE_1[0]
    _paper(panels[0], published.MEAN_WIDTH, published.rows_a_second(linux))
    _paper(panels[1], published.MEAN_WIDTH, linux.kilobytes)
    names = ("rows a second, 60 writers", "KB a second", "CPU of PostgreSQL and gateway a row, µs")
    for panel, name in zip(panels, names, strict=False):
        panel.set_xlabel("data columns of a table")
        panel.set_ylabel(name)
        panel.set_xlim(left=0)
    for panel in panels[:2]:
        _logarithmic(panel)
    if costs:
        panels[2].set_ylim(bottom=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    _save(figure, file)


def _paper(panel: "Axes", columns: float, figure: float) -> None:
    panel.plot([columns], [figure], "D", color="black", label="the paper, Linux")


def users(runs: Sequence[Run], file: Path) -> None:
    """Latencies, CPU and rates against the number of users."""
    figure = _figure(9, 3.6 * (1 + any(run.clients == NATIVE for run in runs)))
    kinds = [kind for kind in _CLIENTS if any(run.clients == kind for run in runs)]
    grid = figure.subplots(len(kinds), 2, squeeze=False)
    for (left, right), kind in zip(grid, kinds, strict=True):
        chosen = [run for run in runs if run.clients == kind]
        numbers = [run.users for run in chosen]
        _latencies(left, chosen, numbers)
        if kind == PYTHON:
            left.set_title("Python users at the normal rate", fontsize=10, loc="left")
            _cpu(right, chosen, numbers)
        else:
            left.set_title("native writers at the highest rate", fontsize=10, loc="left")
            right.plot(numbers, [run.rows for run in chosen], color=_CLIENTS[NATIVE][0], marker="s")
            right.set_ylabel("rows a second")
            right.set_ylim(bottom=0)
        for panel in (left, right):
            panel.set_xlabel("users logged in")
            panel.set_xscale("log")
            panel.set_xticks(numbers, [f"{number:,}" for number in numbers])
            panel.minorticks_off()
    _save(figure, file)


def _latencies(panel: "Axes", runs: Sequence[Run], numbers: Sequence[int]) -> None:
    lines: list[tuple[str, str, str, Callable[[Run], float | None]]] = [
        ("writes, median", "#4477aa", "-", lambda run: run.writes.p50),
        ("writes, 99 %", "#4477aa", "--", lambda run: run.writes.p99),
        ("reads, median", "#228833", "-", lambda run: run.reads.p50 if run.reads else None),
        ("reads, 99 %", "#228833", "--", lambda run: run.reads.p99 if run.reads else None),
    ]
    for name, colour, style, figure in lines:
        points = [(number, figure(run)) for number, run in zip(numbers, runs, strict=True)]
        known = [(number, 1000 * value) for number, value in points if value is not None]
        if known:
            panel.plot(*zip(*known, strict=True), color=colour, linestyle=style, marker=".", label=name)
    _logarithmic(panel)
    panel.set_ylabel("ms")
    panel.legend(frameon=False, fontsize=8)


def _cpu(panel: "Axes", runs: Sequence[Run], numbers: Sequence[int]) -> None:
    for part in ("machine", "postgres", "gateway", "clients"):
        shares = [run.share(part) for run in runs]
        if all(share is not None for share in shares):
            colour, name = _PARTS.get(part, ("#999999", "everything on the machine"))
            panel.plot(
                numbers,
                [100 * (one or 0.0) for one in shares],
                color=colour,
                marker=_MARKERS[part],
                markersize=5,
                label=name,
            )
    panel.set_ylabel(f"% of {runs[0].cores} cores")
    panel.set_ylim(0, 100)
    panel.legend(frameon=False, fontsize=8)
