"""A model of stored samples in dictionaries: the contract of tables of samples (docs/reference/procedures.md,
Samples) without any code of ringlog."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

NAME = "gauges"
DRIFT = timedelta(minutes=30)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TRACES = "traces"
POINTS = 6
"""at most so many of a waveform"""

Sample = tuple[float | None, int, int]
"""value, severity, status"""
Wave = tuple[list[float] | None, int, int]
"""points, severity, status"""


def instant(nanoseconds: int) -> datetime:
    """The microsecond of a time in nanoseconds since 1970."""
    return EPOCH + nanoseconds // 1000 * MICROSECOND


def nanoseconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND * 1000


@dataclass
class Signal:
    """A signal with its samples by nanoseconds since 1970."""

    samples: dict[int, Any] = field(default_factory=dict)
    """each a Sample, or a Wave in the table of waveforms"""
    is_paused: bool = False
    is_retired: bool = False

    def span(self, begin: datetime, end: datetime) -> list[tuple[int, Any]]:
        """Its samples by time; `end` is exclusive."""
        first, last = nanoseconds_of(begin), nanoseconds_of(end)
        return [(at, self.samples[at]) for at in sorted(self.samples) if first <= at < last]


DEADBANDS = {"gauge:1": None, "gauge:2": 0.5, "gauge:3": "20 %"}
"""of signals, for `ringlog load`"""

FACILITY = f"""
[[table]]
name = "{NAME}"
kind = "samples"
type = "double"
ring = 20
clock_drift = {DRIFT.total_seconds():.0f}
""" + "".join(
    f'[[table.signal]]\nname = "{name}"\n' + (f"deadband = {json.dumps(deadband)}\n" if deadband else "")
    for name, deadband in DEADBANDS.items()
)
WAVES = f"""
[[table]]
name = "{TRACES}"
kind = "samples"
type = "double[]"
points = {POINTS}
ring = 5
clock_drift = {DRIFT.total_seconds():.0f}
[[table.signal]]
name = "trace:{{n}}"
count = 2
"""
