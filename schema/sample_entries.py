"""Reads the tables of samples of a facility file: `[[table]]` with `kind = "samples"`."""

from collections.abc import Iterator
from datetime import timedelta

from ringlog.schema.column_entries import states_of
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.entries import Entry, column_type, count_of, limits_of, repeated
from ringlog.schema.facility import SampleSignal, SampleTable
from ringlog.schema.policy_entries import retention_of, seconds_of

_OF_ROWS = (
    "rows",
    "cycle",
    "column",
    "sample",
    "summaries",
    "nan",
    "nanoseconds",
    "node",
    "renamed_from",
    "retired",
)
_KINDS = (Kind.DOUBLE, Kind.REAL, Kind.INT, Kind.SMALLINT, Kind.BIGINT, Kind.BIT, Kind.TEXT)
_ANY = ColumnType(Kind.DOUBLE)  # of a table whose type is wrong


def sample_table_of(entry: Entry, name: str) -> SampleTable:
    """A table of samples; what breaks rules is noted as a problem of `entry`."""
    for key in _OF_ROWS:
        if entry.take(key) is not None:
            entry.refuse(f"{key} is for tables of rows, and this one has samples (kind)")
    description = entry.text("description")
    kind = column_type(entry)
    if kind is not None and (kind.is_array or kind.kind not in _KINDS):
        entry.refuse(f"type '{kind}': samples are {', '.join(_KINDS[:-1])} or text")
        kind = None
    ring = count_of(entry, "ring", 1000 if (given := entry.take("ring")) is None else given)
    if entry.take("log") not in (None, "every"):
        entry.refuse('log must be "every": a table of samples keeps all of them')
    retention = retention_of(entry)
    drift = entry.take("clock_drift")
    seconds = None if drift is None else seconds_of(entry, "clock_drift", drift)
    signals: list[SampleSignal] = []
    for signal in entry.entries("signal", "table", needed=False):
        signals.extend(_signals(signal, kind))
    entry.end("table of samples")
    for twice in repeated(signal.name for signal in signals):
        entry.refuse(f"two signals are named {twice}")
    clock_drift = SampleTable.clock_drift if seconds is None else timedelta(seconds=seconds)
    return SampleTable(name, kind or _ANY, ring, description, retention, clock_drift, tuple(signals))


def _signals(entry: Entry, kind: ColumnType | None) -> Iterator[SampleSignal]:
    pattern = entry.text("name", None)
    given = entry.take("count")
    count = count_of(entry, "count", given)
    unit, description, held = entry.text("unit"), entry.text("description"), entry.flag("held")
    limits, alarm_limits = limits_of(entry, kind), limits_of(entry, kind, "alarm_limits")
    if limits and alarm_limits and not alarm_limits[0] <= limits[0] < limits[1] <= alarm_limits[1]:
        entry.refuse("alarm_limits must be around limits")
    states = states_of(entry, kind)
    entry.end("signal")
    if ("{n}" in pattern) != (given is not None):
        entry.refuse("name has {n} where a count is given, and only there")
    elif not pattern or "\n" in pattern or pattern != pattern.strip():
        entry.refuse("name must be one line of text without blanks around it")
    else:
        for n in map(str, range(1, count + 1)):
            words = description.replace("{n}", n)
            yield SampleSignal(pattern.replace("{n}", n), unit, words, limits, alarm_limits, states, held)
