"""Reads the tables of samples of a facility file, `[[table]]` with `kind = "samples"`, and their policies."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ringlog.procedures import DEADBAND
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import SAMPLE_LEVELS, SamplePolicy, SampleSignal, SampleTable
from ringlog.schema.facility_files.column_entries import points_of, states_of
from ringlog.schema.facility_files.entries import Entry, column_type, count_of, is_number, limits_of, repeated
from ringlog.schema.facility_files.policy_entries import retention_of, seconds_of, spans_of

_OF_ROWS = ("rows", "cycle", "column", "sample", "nan", "nanoseconds", "renamed_from", "retired")
_KINDS = (Kind.DOUBLE, Kind.REAL, Kind.INT, Kind.SMALLINT, Kind.BIGINT, Kind.BIT, Kind.TEXT)
_DEADBAND = re.compile(DEADBAND, re.ASCII)
_ANY = ColumnType(Kind.DOUBLE)  # in place of an invalid type


def sample_table_of(entry: Entry, name: str) -> SampleTable:
    """A table of samples; broken rules are noted as problems of `entry`."""
    for key in _OF_ROWS:
        if entry.take(key) is not None:
            entry.refuse(f"{key} is for tables of rows, and this one has samples (kind)")
    description = entry.text("description")
    kind = column_type(entry)
    if kind is not None and (kind.kind not in _KINDS or (kind.is_array and not kind.is_packed)):
        known = ", ".join(_KINDS[:-1])
        entry.refuse(f"type '{kind}': samples are {known}, text, or waveforms of numbers, as double[]")
        kind = None
    points = points_of(entry, kind)
    ring = count_of(entry, "ring", 1000 if (given := entry.take("ring")) is None else given)
    if entry.take("log") not in (None, "every"):
        entry.refuse('log must be "every": a table of samples keeps all of them')
    retention = retention_of(entry)
    drift = entry.take("clock_drift")
    seconds = None if drift is None else seconds_of(entry, "clock_drift", drift)
    collect = seconds_of(entry, "collect", entry.take("collect"))
    deadband = _deadband(entry, kind)
    has_none = kind is not None and not kind.is_fixed
    summaries = spans_of(entry, () if has_none else SAMPLE_LEVELS, SAMPLE_LEVELS)
    if has_none and summaries:
        entry.refuse(f"summaries are of numbers, and this table has {kind}")
    node = entry.text("node") or None
    signals: list[SampleSignal] = []
    for signal in entry.entries("signal", "table", needed=False):
        signals.extend(_signals(signal, kind))
    entry.end("table of samples")
    for twice in repeated(signal.name for signal in signals):
        entry.refuse(f"two signals are named {twice}")
    clock_drift = SampleTable.clock_drift if seconds is None else timedelta(seconds=seconds)
    return SampleTable(
        name,
        kind or _ANY,
        ring,
        description,
        retention,
        clock_drift,
        tuple(signals),
        deadband,
        collect,
        summaries,
        points,
        node,
    )


def _signals(entry: Entry, kind: ColumnType | None) -> Iterator[SampleSignal]:
    pattern = entry.text("name", None)
    given = entry.take("count")
    count = count_of(entry, "count", given)
    unit, description, held = entry.text("unit"), entry.text("description"), entry.flag("held")
    limits, alarm_limits = limits_of(entry, kind), limits_of(entry, kind, "alarm_limits")
    if limits and alarm_limits and not alarm_limits[0] <= limits[0] < limits[1] <= alarm_limits[1]:
        entry.refuse("alarm_limits must be around limits")
    states = states_of(entry, kind)
    address, deadband = entry.text("address"), _deadband(entry, kind)
    policy = entry.text("policy")
    entry.end("signal")
    if given is not None and address and "{n}" not in address:
        entry.refuse("address needs {n} where a count is given")
    if ("{n}" in pattern) != (given is not None):
        entry.refuse("name has {n} where a count is given, and only there")
    elif not pattern or "\n" in pattern or pattern != pattern.strip():
        entry.refuse("name must be one line of text without blanks around it")
    else:
        for n in map(str, range(1, count + 1)):
            text = description.replace("{n}", n)
            yield SampleSignal(
                pattern.replace("{n}", n),
                unit,
                text,
                limits,
                alarm_limits,
                states,
                held,
                address.replace("{n}", n),
                deadband,
                policy,
            )


def policies_of(entry: Entry) -> Iterator[SamplePolicy]:
    """The [[policy]] entries, in their order."""
    for policy in entry.entries("policy", needed=False):
        name = policy.text("name", None)
        if name != name.strip() or "\n" in name:
            policy.refuse("name must be one line of text without blanks around it")
        method, period, rate = policy.text("method", "monitor"), policy.take("period"), policy.take("rate")
        if method not in ("monitor", "scan"):
            policy.refuse(f"method '{method}' is neither monitor nor scan")
        elif (period is None) is (method == "scan"):
            policy.refuse("period is the distance of two samples in seconds: scan needs it, monitor has none")
        if policy.take("retention") is not None:
            policy.refuse(
                "retention is of a whole table, whose weeks are removed with all signals: make another table"
            )
        address, record_types = policy.text("address", "*"), _record_types(policy)
        policy.end("policy")
        yield SamplePolicy(
            name,
            None if period is None else seconds_of(policy, "period", period),
            address,
            record_types,
            None if rate is None else _rate(policy, rate),
        )


def _record_types(entry: Entry) -> tuple[str, ...]:
    value = entry.take("record_type")
    if value is None:
        return ()
    types = [value] if isinstance(value, str) else value
    if isinstance(types, list) and types and all(isinstance(each, str) and each for each in types):
        return tuple(types)
    entry.refuse('record_type must be one of EPICS, as "ai", or a list of them')
    return ()


def _rate(entry: Entry, value: Any) -> float | None:
    if is_number(value) and value > 0:
        return float(value)
    entry.refuse("rate must be a number of events a second, above 0")
    return None


def _deadband(entry: Entry, kind: ColumnType | None) -> str:
    """The deadband in the form in which `ringlog signal add` takes it."""
    value = entry.take("deadband")
    if value in (None, "ADEL", "MDEL"):
        return value or ""
    if kind is not None and (not kind.is_fixed or kind.kind is Kind.BIT):
        entry.refuse(f"a deadband is for numbers, and this table has {kind}")
    elif (is_number(value) or str(value).endswith("%")) and _DEADBAND.fullmatch(str(value)):
        return str(value)
    else:
        entry.refuse('deadband must be a number in the unit of the signals, a part as "0.5 %", ADEL or MDEL')
    return ""
