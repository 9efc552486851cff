"""Plots of outcomes, readable without colour: lines differ by marker and dash as well."""

import logging
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringlog.loadtest.experiment.document import Picture
from ringlog.loadtest.experiment.outcome import Line, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's "bright" scheme, dark to light, so that grey keeps the order.
_STYLES = (
    ("#332288", "o", "-"),
    ("#cc3311", "s", "--"),
    ("#117733", "^", "-."),
    ("#4477aa", "D", ":"),
    ("#aa7733", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#999933", "P", (0, (1, 1))),
    ("#88aabb", "X", (0, (6, 2))),
    ("#aaaaaa", "*", (0, (3, 3))),
)
_MANY = 40
"""Number of points from which on a joined line has markers at only some of them."""


def pictures(plots: Iterable[Plot], folder: Path, prefix: str = "") -> Iterator[Picture]:
    """Draws plots into a folder, each as a file of its name."""
    for plot in plots:
        name = f"{prefix}{plot.name}.png"
        draw(plot, folder / name)
        yield Picture(name, plot.caption)


def draw(plot: Plot, file: Path) -> None:
    """Draws it as PNG."""
    # imported late, because it is large and not every command draws
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panel = figure.subplots()
    if plot.across_logarithmic:
        panel.set_xscale("log")
    if plot.up_logarithmic:
        panel.set_yscale("log")
    styles = cycle(_STYLES)
    for line in plot.lines:
        if line.paper:
            _draw(panel, line, "black", "x", (0, (2, 2)))
        else:
            _draw(panel, line, *next(styles))
    for logarithmic, axis in ((plot.across_logarithmic, panel.xaxis), (plot.up_logarithmic, panel.yaxis)):
        # numbers without exponents
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        if logarithmic:
            axis.set_minor_formatter(NullFormatter())
    if not plot.up_logarithmic:
        panel.set_ylim(bottom=0)
    panel.set_xlabel(plot.across)
    panel.set_ylabel(plot.up)
    panel.grid(alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if len(plot.lines) > 1:
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)


def _draw(panel: "Axes", line: Line, colour: str, marker: str, dash: Any) -> None:
    across, up = [one[0] for one in line.points], [one[1] for one in line.points]
    every = max(1, len(across) // _MANY) if line.joined else 1
    panel.plot(
        across,
        up,
        color=colour,
        marker=marker,
        markersize=4.5,
        markevery=every,
        linestyle=dash if line.joined else "none",
        linewidth=1.4,
        label=line.label,
    )
    if line.band:
        middles, least, most = zip(*line.band, strict=True)
        panel.fill_between(middles, least, most, color=colour, alpha=0.15, linewidth=0)
