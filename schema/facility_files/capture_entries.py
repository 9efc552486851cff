"""Reads the [[capture]] entries of a facility file: rules by which events are registered."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ringlog.procedures import CAPTURE_DAYS, CAPTURE_SECONDS
from ringlog.schema.facility import CaptureRule, SampleTable, Table
from ringlog.schema.facility_files.entries import Entry, is_number

_YEAR = 366 * 86_400.0  # seconds
_SHORTEST_PAUSE = 60.0
"""Seconds: more than those for which ringlog/server/captures.py looks back."""


def captures_of(
    entry: Entry, tables: Collection[Table | SampleTable], groups: Mapping[str, tuple[str, ...]]
) -> Iterator[CaptureRule]:
    known = {table.name: table for table in tables}
    for rule in entry.entries("capture", needed=False):
        name = rule.text("name", None)
        if name != name.strip() or "\n" in name:
            rule.refuse("name must be one line of text without blanks around it")
        patterns, wanted = _texts(rule, "signals"), _texts(rule, "tables")
        before, after = (_seconds(rule, key, 10.0, 0.0) for key in ("before", "after"))
        if not 0 < before + after <= CAPTURE_SECONDS:
            rule.refuse(f"before and after must be together more than 0 and at most {CAPTURE_SECONDS} s")
        pause = _seconds(rule, "pause", 600.0, _SHORTEST_PAUSE)
        keep_days = rule.take("keep_days")
        if not (keep_days is None or (is_number(keep_days) and 0 < keep_days <= CAPTURE_DAYS)):
            rule.refuse(f"keep_days must be a number of days, above 0 and at most {CAPTURE_DAYS}")
        note = rule.text("note")
        rule.end("capture")
        names = dict.fromkeys(table for each in wanted for table in groups.get(each, (each,)))
        for missing in [each for each in names if each not in known]:
            rule.refuse(f"tables: there is no table or group '{missing}'")
        nodes = {known[each].node for each in names if each in known}
        if len(nodes) > 1:
            rule.refuse("tables must be on one server: make a rule for each")
        node = next(iter(nodes), None)
        there = [table for table in tables if table.node == node]
        for pattern in patterns:
            _check(rule, pattern, there)
        yield CaptureRule(name, patterns, tuple(names), before, after, keep_days, pause, note, node)


def _check(rule: Entry, pattern: str, tables: Collection[Table | SampleTable]) -> None:
    """Refuses signals that never start a capture. Those of samples may get a name and limits later."""
    wanted = ".*".join(map(re.escape, pattern.split("*")))
    columns = [column for table in tables if isinstance(table, Table) for column in table.columns]
    found = [column for column in columns if re.fullmatch(wanted, column.signal)]
    if found and not any(column.alarm_limits and column.is_number for column in found):
        rule.refuse(f"signals: '{pattern}' has no alarm_limits")
    elif not found and not any(isinstance(table, SampleTable) for table in tables):
        rule.refuse(f"signals: there is no signal '{pattern}' on the server of its tables")


def _texts(entry: Entry, key: str) -> tuple[str, ...]:
    value: Any = entry.demand(key)
    if isinstance(value, list) and value and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    if value is not None:
        entry.refuse(f"{key} must be a list of names")
    return ()


def _seconds(entry: Entry, key: str, default: float, least: float) -> float:
    value = entry.take(key)
    if value is None:
        return default
    if is_number(value) and least <= value <= _YEAR:
        return float(value)
    entry.refuse(f"{key} must be a number of seconds, from {least:g} to a year")
    return default
