"""The command `ringlog plot`: trends of signals on the terminal, or as a picture."""

import sys
from datetime import UTC
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringlog.clients.reading import read
from ringlog.commands.signals.export import End, Names, Start, Url, notes_of, reported
from ringlog.errors import ServerError
from ringlog.extras import demand

if TYPE_CHECKING:
    import pyarrow as pa

_BREAK = 5  # usual distances of points; a line is interrupted where one is longer, as on the page


def plot(
    signals: Names,
    start: Start = "now-1h",
    end: End = "now",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.png", show_default="the terminal", help="A picture."),
    ] = None,
    server: Url = "http://127.0.0.1:8080",
) -> None:
    """Plot trends of signals on the terminal, or to a picture. Times are UTC."""
    demand("pyarrow", "matplotlib" if output else "plotext")
    with reported():
        tables = {name: read(name, start, end, points=1000, server=server) for name in signals}
    empty = [name for name, table in tables.items() if not table.num_rows]
    if len(empty) == len(tables):
        raise ServerError(f"{', '.join(empty)}: no samples from {start} to {end}")
    for name in empty:
        print(f"{name}: no samples from {start} to {end}", file=sys.stderr)
    if output:
        _picture(tables, output)
    else:
        _terminal({name: table for name, table in tables.items() if table.num_rows})


def _lines(table: "pa.Table") -> list["pa.Table"]:
    """The parts of a trend between its gaps."""
    import numpy as np

    time = table["time"].cast("int64").to_numpy()
    steps = np.diff(time)
    breaks = (
        np.flatnonzero(steps > _BREAK * np.median(steps)) + 1 if len(steps) > 1 else np.empty(0, np.int64)
    )
    bounds = [0, *map(int, breaks), len(time)]
    return [table.slice(begin, after - begin) for begin, after in pairwise(bounds)]


def _label(name: str, table: "pa.Table") -> str:
    unit = notes_of(table)[name]["unit"]
    return f"{name} ({unit})" if unit else name


def _picture(tables: dict[str, "pa.Table"], output: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 2.6 * len(tables)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(tables), 1, sharex=True, squeeze=False)
    for row, (name, table) in enumerate(tables.items()):
        axis = axes[row][0]
        for part in _lines(table):
            time = part["time"].to_pylist()
            lone = {"marker": "."} if len(time) == 1 else {}
            axis.fill_between(
                time, part["min"].to_numpy(), part["max"].to_numpy(), alpha=0.25, linewidth=0, color="C0"
            )
            axis.plot(time, part["mean"].to_numpy(), linewidth=1, color="C0", **lone)
        axis.set_title(
            _label(name, table) if table.num_rows else f"{name}: no samples", loc="left", fontsize=10
        )
        axis.grid(visible=True, alpha=0.3)
    axes[-1][0].set_xlabel("UTC")
    figure.savefig(output, dpi=110)
    print(output)


def _terminal(tables: dict[str, "pa.Table"]) -> None:
    import plotext

    plotext.clear_figure()
    plotext.date_form("Y-m-d H:M:S")
    plotext.xlabel("UTC")
    drawn: list[float] = []
    colours = ["blue", "orange", "green", "red", "magenta", "cyan"]
    for index, (name, table) in enumerate(tables.items()):
        label: str | None = _label(name, table)
        for part in _lines(table):
            rows = zip(part["time"].to_pylist(), part["mean"].to_pylist(), strict=True)
            kept = [(time.astimezone(UTC), mean) for time, mean in rows if mean is not None]
            if kept:
                times = [f"{time:%Y-%m-%d %H:%M:%S}" for time, _ in kept]
                means = [mean for _, mean in kept]
                drawn += means
                plotext.plot(times, means, label=label, marker="braille", color=colours[index % len(colours)])
                # the legend has each signal once
                label = None
    plotext.yticks(*_ticks([mean for mean in drawn if isfinite(mean)]))
    plotext.plotsize(100, 24)
    picture = plotext.build()
    print(picture if sys.stdout.isatty() else plotext.uncolorize(picture))


def _ticks(values: list[float]) -> tuple[list[float], list[str]]:
    """Seven marks over the range of some values, with as many digits as tell them apart."""
    if not values or min(values) == max(values):
        marks = values[:1]
    else:
        low, high = min(values), max(values)
        marks = [low + (high - low) * step / 6 for step in range(7)]
    for digits in range(3, 17):
        texts = [f"{mark:.{digits}g}" for mark in marks]
        if len({*texts}) == len(texts):
            break
    return marks, texts
