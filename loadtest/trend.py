"""A picture of a few signals, read over TDS by a procedure, as any client would."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from ringlog.clients import Address, call, connect
from ringlog.schema.facility import Column, Facility

# The most important signals of a storage ring first (beam, vacuum, magnets, temperatures), then all others.
_UNITS = ("mA", "Pa", "A", "degC")
_LEVELS = ("mA", "Pa")
_PANELS = 4
_LINES = 3


@dataclass(frozen=True)
class Trend:
    """A signal's values at their times (local to the facility)."""

    column: Column
    times: Sequence[datetime]
    values: Sequence[float]


def example_signals(facility: Facility) -> list[list[Column]]:
    """Up to four groups of up to three signals of the same unit, of the tables written most often."""
    groups: dict[str, list[Column]] = {}
    for table in sorted(facility.tables, key=lambda table: table.cycle):
        for column in table.columns:
            if column.type.is_float and not column.is_waveform:
                groups.setdefault(column.unit, []).append(column)
    units = [unit for unit in _UNITS if unit in groups] + [unit for unit in groups if unit not in _UNITS]
    return [groups[unit][:_LINES] for unit in units[:_PANELS]]


def read_trends(
    address: Address, password: str, groups: Sequence[Sequence[Column]], begin: datetime, end: datetime
) -> list[list[Trend]]:
    """The signals' history between two moments, by get_signal over TDS."""
    connection = connect(address, password)
    try:
        return [
            [
                _read(column, call(connection, "get_signal", column.signal, begin, end).rows)
                for column in group
            ]
            for group in groups
        ]
    finally:
        connection.close()


def _read(column: Column, rows: Sequence[tuple[object, ...]]) -> Trend:
    known = [(time, value) for time, value, *_ in rows if value is not None]
    return Trend(
        column, [cast(datetime, time) for time, _ in known], [float(cast(float, value)) for _, value in known]
    )


def draw(groups: Sequence[Sequence[Trend]], title: str, file: Path) -> None:
    """Draws a panel for each group, one above the other with a common time axis, as PNG.

    Very different levels would hide every movement: beam currents are drawn unchanged, pressures that differ
    by a decade on a logarithmic scale, other signals as deviations from their mean.
    """
    # Imported late: it is large, and numpy starts threads, which a process that forks must not have.
    import matplotlib
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    with matplotlib.rc_context({"date.converter": "concise", "axes.formatter.useoffset": False}):
        figure = Figure(figsize=(10, 2.1 * len(groups) + 0.8), layout="constrained")
        panels = figure.subplots(len(groups), sharex=True, squeeze=False)[:, 0]
        for panel, group in zip(panels, groups, strict=True):
            unit = group[0].column.unit
            deviates = unit not in _LEVELS
            for trend in group:
                mean = sum(trend.values) / max(1, len(trend.values)) if deviates else 0.0
                label = f"{trend.column.signal}\n{mean:.5g} {unit}" if deviates else trend.column.signal
                values = [value - mean for value in trend.values]
                panel.plot(trend.times, values, marker=".", markersize=3, linewidth=1, label=label)
            levels = [value for trend in group for value in trend.values]
            if unit in _LEVELS and levels and 0 < 10 * min(levels) < max(levels):
                panel.set_yscale("log")
            panel.set_ylabel(f"{unit}, from its mean" if deviates else unit)
            panel.grid(alpha=0.3)
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
        figure.suptitle(title, fontsize=11)
        figure.align_ylabels()
        figure.savefig(file, dpi=120)
