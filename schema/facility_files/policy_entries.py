"""Reads the entries of a facility file about time: cycles, log and sampling policies, retention."""

import re
from datetime import timedelta
from typing import Any

from ringlog.schema.facility import (
    KEEP_DROPPED,
    SUMMARY_LEVELS,
    Facility,
    History,
    LogPolicy,
    Retention,
    Sampling,
)
from ringlog.schema.facility_files.entries import Entry, count_of, is_number

SHORTEST, LONGEST = 1e-6, 366 * 86_400.0  # of cycles and periods, in seconds
_RETENTION = re.compile(r"([1-9]\d{0,5}) (day|week|month|year)s?")
HISTORY = {"online", "archive", "keep_replaced"}
_TOLERANCE = re.compile(r"([1-9]\d{0,5}) (minute|hour|day|week)s?")
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_ROWS_OF_A_SPAN = 30
"""Summaries of fewer rows would take as much room as the rows."""


def log_policy_of(entry: Entry, rows: int) -> LogPolicy:
    value = entry.take("log")
    if value is None or value == "every":
        return LogPolicy()
    if isinstance(value, dict) and set(value) == {"nth"}:
        nth = count_of(entry, "log.nth", value["nth"])
        if rows % nth:
            # else the distance between two log rows would change where the ring wraps around
            entry.refuse(f"rows ({rows}) must be a multiple of log.nth ({nth})")
        return LogPolicy(nth=nth)
    if isinstance(value, dict) and set(value) == {"period"}:
        return LogPolicy(period=seconds_of(entry, "log.period", value["period"]))
    entry.refuse('log must be "every", { nth = rows } or { period = seconds }')
    return LogPolicy()


SAMPLE = {"mode", "min_period", "max_period", "clock_drift"}


def sampling_of(entry: Entry) -> Sampling:
    value = entry.take("sample")
    given = {"mode": value} if isinstance(value, str) else {} if value is None else value
    if not isinstance(given, dict) or set(given) - SAMPLE:
        entry.refuse('sample must be "scan", "monitor" or { mode, min_period, max_period, clock_drift }')
        return Sampling()
    mode = given.get("mode", "scan")
    if mode not in ("scan", "monitor"):
        entry.refuse(f"sample.mode '{mode}' is neither scan nor monitor")
        mode = "scan"
    periods = {
        key: None if key not in given else seconds_of(entry, f"sample.{key}", given[key])
        for key in ("min_period", "max_period")
    }
    if mode == "scan" and periods["min_period"] is not None:
        entry.refuse("sample.min_period is for monitor: a scan has its cycle")
    drift = seconds_of(entry, "sample.clock_drift", given.get("clock_drift", Sampling.clock_drift))
    sampling = Sampling(mode, **periods, clock_drift=drift or Sampling.clock_drift)
    if sampling.min_period and sampling.max_period and sampling.min_period > sampling.max_period:
        entry.refuse("sample.min_period must not be longer than sample.max_period")
    return sampling


def summaries_of(entry: Entry, cycle: float, log: LogPolicy) -> tuple[int, ...]:
    """The spans given; by default those with enough rows."""
    period = log.period or cycle * log.nth
    usual = tuple(span for span in SUMMARY_LEVELS.values() if span >= _ROWS_OF_A_SPAN * period)
    return spans_of(entry, usual, tuple(SUMMARY_LEVELS.values()))


def spans_of(entry: Entry, usual: tuple[int, ...], possible: tuple[int, ...]) -> tuple[int, ...]:
    """The spans of summaries that are given, by default `usual`."""
    value = entry.take("summaries")
    if value is None:
        return usual
    known = {name: span for name, span in SUMMARY_LEVELS.items() if span in possible}
    if isinstance(value, list) and all(isinstance(item, str) and item in known for item in value):
        return tuple(span for name, span in known.items() if name in value)
    names = ", ".join(f'"{name}"' for name in known)
    entry.refuse(f"summaries must be a list of some of {names}; [] is none")
    return ()


def retention_of(entry: Entry) -> Retention | None:
    value = entry.take("retention")
    if value is None:
        return None
    if isinstance(value, str) and (match := _RETENTION.fullmatch(value)):
        amount, unit = int(match[1]), match[2]
        if amount * _DAYS[unit] <= 1000 * _DAYS["year"]:
            return Retention(amount, unit)
    entry.refuse(
        f"retention '{value}' must be days, weeks, months or years up to 1000 years, as \"10 years\""
    )
    return None


def clock_tolerance_of(entry: Entry) -> timedelta | None:
    value = entry.take("clock_tolerance")
    if value is None:
        return Facility.clock_tolerance
    if value == "none":
        return None
    if isinstance(value, str) and (match := _TOLERANCE.fullmatch(value)):
        return timedelta(**{f"{match[2]}s": int(match[1])})
    entry.refuse(f'clock_tolerance \'{value}\' must be minutes, hours, days or weeks, as "1 day", or "none"')
    return None


def seconds_of(entry: Entry, key: str, value: Any) -> float:
    if value is None:
        return 1.0
    if is_number(value) and SHORTEST <= value <= LONGEST:
        return float(value)
    entry.refuse(f"{key} must be a number of seconds, from a microsecond to a year")
    return 1.0


def keep_dropped_of(entry: Entry) -> Retention | None:
    value = entry.take("keep_dropped")
    if value is None:
        return KEEP_DROPPED
    if value == "none":
        return None
    if isinstance(value, str) and (match := _RETENTION.fullmatch(value)):
        return Retention(int(match[1]), match[2])
    entry.refuse(f'keep_dropped \'{value}\' must be days, weeks, months or years, as "14 days", or "none"')
    return None


def history_of(entry: Entry) -> History | None:
    value = entry.take("history")
    if value is None:
        return None
    if not isinstance(value, dict) or not {"online", "archive"} <= set(value) <= HISTORY:
        entry.refuse("[history] needs online and archive; it may have keep_replaced, and nothing else")
        return None
    archive = value["archive"]
    times = {
        name: _history_time(entry, name, value[name]) for name in ("online", "keep_replaced") if name in value
    }
    if not isinstance(archive, str) or not archive.startswith(("/", "s3://")) or not archive.isprintable():
        entry.refuse(
            f"history.archive '{archive}' must be the absolute path of a folder, or s3://bucket/folder"
        )
        return None
    if "@" in archive.split("?")[0] and archive.startswith("s3://"):
        # as the archive's address, the keys would be shown to every reader
        entry.refuse("history.archive must not have keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        return None
    given = {name: time for name, time in times.items() if time is not None}
    return History(archive=archive, **given) if given.keys() == times.keys() else None


def _history_time(entry: Entry, name: str, value: Any) -> Retention | None:
    match = _RETENTION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        entry.refuse(f"history.{name} '{value}' must be days, weeks, months or years, as \"8 weeks\"")
        return None
    return Retention(int(match[1]), match[2])
