"""The facility file: read from TOML and checked.

docs/facility-files.md is the reference for those who write one.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ringlog.procedures import OF_A_TABLE, OVER_ALL_TABLES
from ringlog.procedures.parameters import OVER_ALL_PARAMETERS
from ringlog.schema.entries import (
    IDENTIFIER,
    NAME_BYTES,
    NUMERIC,
    ROW_BYTES,
    SYSTEM_COLUMNS,
    TABLE_COLUMNS,
    VARCHAR,
    WIDTHS,
    Entry,
    check_identifier,
    column_type,
    count_of,
    is_number,
    is_text,
    limits_of,
    repeated,
)
from ringlog.schema.facility import (
    KEY_COLUMNS,
    MOST_POINTS,
    NANOSECONDS,
    SUMMARY_LEVELS,
    Column,
    Deadband,
    Facility,
    History,
    LogPolicy,
    Retention,
    Sampling,
    Table,
    nanoseconds_of,
)
from ringlog.schema.parameters import parameters_of, procedures_of

SHORTEST, LONGEST = 1e-6, 366 * 86_400.0  # of cycles and periods, in seconds
_RETENTION = re.compile(r"([1-9]\d{0,5}) (day|week|month|year)s?")
_TOLERANCE = re.compile(r"([1-9]\d{0,5}) (minute|hour|day|week)s?")
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)
_PARTITION = re.compile(r".+_(\d{4}([wm]\d{2}|y)|default)")
_ROWS_OF_A_SPAN = 30
"""Summaries of fewer rows would take as much room as the rows."""
_TABLE_NAME_BYTES = NAME_BYTES - max(len(name.format("")) for name in OF_A_TABLE.values())


class FacilityError(ValueError):
    """A facility file breaks rules. `problems` has a line for each, naming table, column and rule."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}: {problem}" for problem in self.problems))


def load_facility(path: str | Path) -> Facility:
    """Reads and checks a facility file. Raises FacilityError with every rule it breaks."""
    path = Path(path)
    try:
        # editors of Windows begin a file with a byte order mark
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise FacilityError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise FacilityError(str(path), [f"is not TOML: {error}"]) from error
    problems: list[str] = []
    facility = _facility(Entry(content, "", problems), path.stem)
    if problems:
        raise FacilityError(str(path), problems)
    return facility


def _facility(entry: Entry, stem: str) -> Facility:
    name = entry.text("name", stem)
    timezone = entry.text("timezone", "UTC")
    try:
        ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        entry.refuse(f"timezone '{timezone}' is no name of the IANA time zone database")
    byte_order = entry.text("byte_order", "little")
    if byte_order not in ("little", "big"):
        entry.refuse(f"byte_order '{byte_order}' is neither little nor big")
    clock_tolerance = _clock_tolerance(entry)
    history = _history(entry)
    tables = []
    for table_entry in entry.entries("table"):
        tables.append(_table(table_entry, byte_order))
    parameters = tuple(parameters_of(entry))
    entry.end("facility")
    for twice in repeated(table.name for table in tables):
        entry.refuse(f"two tables are named {twice}")
    for twice in repeated(parameter.name for parameter in parameters):
        entry.refuse(f"two parameters are named {twice}")
    names = {table.name for table in tables}
    for former in [table.renamed_from for table in tables if table.renamed_from in names]:
        entry.refuse(f"renamed_from '{former}': another table has this name now")
    for twice in repeated(table.renamed_from or "" for table in tables):
        entry.refuse(f"two tables are renamed from {twice}")
    owners: dict[str, str] = dict.fromkeys((*OVER_ALL_TABLES, *OVER_ALL_PARAMETERS), "all tables")
    for table in {table.name: table for table in tables}.values():
        called = [table.name, *([table.renamed_from] if table.renamed_from else [])]
        for procedure in (pattern.format(name) for name in called for pattern in OF_A_TABLE.values()):
            if owners.setdefault(procedure, f"table {table.name}") != f"table {table.name}":
                entry.refuse(
                    f"table {table.name}: its procedure {procedure} would be one of {owners[procedure]} too"
                )
    for parameter in {parameter.name: parameter for parameter in parameters}.values():
        for procedure in procedures_of(parameter).values():
            if owners.setdefault(procedure, f"parameter {parameter.name}") != f"parameter {parameter.name}":
                entry.refuse(
                    f"parameter {parameter.name}: its procedure {procedure} would be one of "
                    f"{owners[procedure]} too"
                )
    places: dict[str, str] = {}
    for table in tables:
        for column in table.columns:
            place = f"{table.name}.{column.name}"
            if places.setdefault(column.signal, place) != place:
                entry.refuse(
                    f"table {table.name}, column {column.name}: "
                    f"signal '{column.signal}' is the one of {places[column.signal]} already"
                )
    return Facility(name, timezone, tuple(tables), clock_tolerance, history, parameters, byte_order)


def _history(entry: Entry) -> History | None:
    value = entry.take("history")
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"online", "archive"}:
        entry.refuse("[history] has online and archive, both of them and nothing else")
        return None
    online = value["online"]
    archive = value["archive"]
    match = _RETENTION.fullmatch(online) if isinstance(online, str) else None
    if match is None:
        entry.refuse(f"history.online '{online}' must be days, weeks, months or years, as \"8 weeks\"")
    if not isinstance(archive, str) or not archive.startswith(("/", "s3://")) or not archive.isprintable():
        entry.refuse(
            f"history.archive '{archive}' must be the absolute path of a folder, or s3://bucket/folder"
        )
        return None
    return None if match is None else History(Retention(int(match[1]), match[2]), archive)


def _table(entry: Entry, byte_order: str) -> Table:
    name = entry.text("name", None)
    check_identifier(entry, name, _TABLE_NAME_BYTES, "the longest name of its procedures")
    if _PARTITION.fullmatch(name):
        entry.refuse("name must not end like a log's partition (_2024w07, _2024y, _default)")
    description = entry.text("description")
    rows = count_of(entry, "rows", entry.demand("rows"))
    cycle = _seconds(entry, "cycle", entry.demand("cycle"))
    log = _log_policy(entry, rows)
    retention = _retention(entry)
    sample = _sampling(entry)
    nan = entry.text("nan", "keep")
    if nan not in ("keep", "null"):
        entry.refuse(f"nan '{nan}' is neither keep nor null")
        nan = "keep"
    summaries = _summaries(entry, cycle, log)
    renamed_from = _former_name(entry, _TABLE_NAME_BYTES)
    retired = entry.flag("retired")
    columns: list[Column] = []
    for column_entry in entry.entries("column", "table"):
        columns.extend(_columns(column_entry, name, byte_order))
    nanoseconds = entry.take("nanoseconds")
    if nanoseconds not in (None, True, False):
        entry.refuse("nanoseconds must be true or false")
    for column in columns:
        if column.signal == nanoseconds_of(name):
            entry.refuse(f"column {column.name}: write nanoseconds = true in the table instead")
    if nanoseconds is True:
        words = "what is below a microsecond of the row's time"
        columns.append(Column(NANOSECONDS, nanoseconds_of(name), "smallint", "ns", words, (0.0, 999.0)))
    entry.end("table")
    for twice in repeated(column.name for column in columns):
        entry.refuse(f"two columns are named {twice}")
    column_names = {column.name for column in columns}
    for former in [column.renamed_from for column in columns if column.renamed_from in column_names]:
        entry.refuse(f"renamed_from '{former}': another column has this name now")
    for twice in repeated(column.renamed_from or "" for column in columns):
        entry.refuse(f"two columns are renamed from {twice}")
    _fits_postgresql(entry, columns)
    return Table(
        name,
        rows,
        cycle,
        tuple(columns),
        description,
        log,
        retention,
        sample,
        nan,
        summaries,
        renamed_from,
        retired,
    )


def _former_name(entry: Entry, longest: int) -> str | None:
    name = entry.text("renamed_from")
    if name and (not IDENTIFIER.fullmatch(name) or len(name) > longest):
        entry.refuse(f"renamed_from '{name}' is no name")
        return None
    return name or None


def _fits_postgresql(entry: Entry, columns: Sequence[Column]) -> None:
    most = TABLE_COLUMNS - len(KEY_COLUMNS)
    if len(columns) > most:
        entry.refuse(f"{len(columns)} columns are too many: PostgreSQL's limit leaves {most} for data")
        return
    # The header, a bit for each column, seq_no, time, then each value at a multiple of its width.
    size = _aligned(23 + (len(columns) + len(KEY_COLUMNS) + 7) // 8, 8) + 16
    for column in columns:
        if column.type in WIDTHS:
            size = _aligned(size, WIDTHS[column.type]) + WIDTHS[column.type]
        elif numeric := NUMERIC.fullmatch(column.type):
            # a header of 3 bytes, and 2 for every four digits on either side of the point
            size += 3 + 2 * (-(-int(numeric[1]) // 4) + 1)
        elif column.type == "datetime":
            size = _aligned(size, 8) + 8
        elif varchar := VARCHAR.fullmatch(column.type):
            # what is longer moves out of the row (TOAST); at most 4 bytes a character and one of length
            size += min(1 + 4 * int(varchar[1]), 24)
        else:
            # a text of any length and a waveform move out of the row too
            size += 24
    size = _aligned(size, 8)
    if size > ROW_BYTES:
        entry.refuse(
            f"a row takes up to {size} bytes and PostgreSQL's page holds {ROW_BYTES}: split the table"
        )


def _aligned(size: int, width: int) -> int:
    return -(-size // width) * width


def _columns(entry: Entry, table: str, byte_order: str) -> Iterator[Column]:
    """The column of an entry, or the `count` columns it stands for."""
    pattern = entry.text("name", None)
    number = entry.take("count")
    count = 1 if number is None else count_of(entry, "count", number)
    signal = entry.text("signal", f"{table}/{pattern}")
    kind = column_type(entry)
    points, compress = _waveform(entry, kind)
    unit = entry.text("unit")
    description = entry.text("description")
    limits = limits_of(entry, kind)
    deadband = _deadband(entry, kind)
    former = entry.text("renamed_from")
    if former and ("{n}" in former) != (number is not None):
        entry.refuse(f"renamed_from '{former}' needs {{n}} where a count is given, and only there")
        former = ""
    if former and not IDENTIFIER.fullmatch(former.replace("{n}", "1")):
        entry.refuse(f"renamed_from '{former}' is no name")
        former = ""
    retired = entry.flag("retired")
    entry.end("column")
    if not pattern:
        return
    for key, value in (("name", pattern), ("signal", signal)):
        if number is not None and "{n}" not in value:
            entry.refuse(f"{key} needs {{n}} where a count is given")
            return
        if number is None and "{n}" in value:
            entry.refuse(f"{key} has {{n}} but no count is given")
            return
    if not signal or "\n" in signal or signal != signal.strip():
        entry.refuse("signal must be one line of text without blanks around it")
    if count > TABLE_COLUMNS:
        entry.refuse(f"count {count} is more than a PostgreSQL table can have")
        return
    longest = pattern.replace("{n}", str(count))
    check_identifier(entry, longest, NAME_BYTES, "a PostgreSQL name")
    if longest in KEY_COLUMNS:
        entry.refuse("name is taken: every table has seq_no and time by itself")
    if longest in SYSTEM_COLUMNS:
        entry.refuse(f"name is taken: PostgreSQL has a column {longest} in every table")
    for n in (str(n) for n in range(1, count + 1)):
        yield Column(
            pattern.replace("{n}", n),
            signal.replace("{n}", n),
            kind,
            unit,
            description.replace("{n}", n),
            limits,
            deadband,
            points,
            compress,
            byte_order,
            former.replace("{n}", n) or None,
            retired,
        )


def _waveform(entry: Entry, kind: str) -> tuple[int | None, bool]:
    """The most points of a waveform, and whether it is compressed."""
    points, compress = entry.take("points"), entry.take("compress")
    if not kind.endswith("[]"):
        for key, value in (("points", points), ("compress", compress)):
            if value is not None and kind:
                entry.refuse(f"{key} is for waveforms, and this column is {kind}")
        return None, False
    if not isinstance(points, int) or isinstance(points, bool) or not 1 <= points <= MOST_POINTS:
        entry.refuse(f"a waveform needs points, the most it may have, from 1 to {MOST_POINTS}")
        points = 1
    if compress not in (None, True, False):
        entry.refuse("compress must be true or false")
    return points, bool(compress)


def _log_policy(entry: Entry, rows: int) -> LogPolicy:
    value = entry.take("log")
    if value is None or value == "every":
        return LogPolicy()
    if isinstance(value, dict) and set(value) == {"nth"}:
        nth = count_of(entry, "log.nth", value["nth"])
        if rows % nth:
            # else the distance between two log rows would change where the ring begins again
            entry.refuse(f"rows ({rows}) must be a multiple of log.nth ({nth})")
        return LogPolicy(nth=nth)
    if isinstance(value, dict) and set(value) == {"period"}:
        return LogPolicy(period=_seconds(entry, "log.period", value["period"]))
    entry.refuse('log must be "every", { nth = rows } or { period = seconds }')
    return LogPolicy()


def _sampling(entry: Entry) -> Sampling:
    value = entry.take("sample")
    given = {"mode": value} if isinstance(value, str) else {} if value is None else value
    if not isinstance(given, dict) or set(given) - {"mode", "min_period", "max_period"}:
        entry.refuse('sample must be "scan", "monitor" or { mode, min_period, max_period }')
        return Sampling()
    mode = given.get("mode", "scan")
    if mode not in ("scan", "monitor"):
        entry.refuse(f"sample.mode '{mode}' is neither scan nor monitor")
        mode = "scan"
    periods = {
        key: None if key not in given else _seconds(entry, f"sample.{key}", given[key])
        for key in ("min_period", "max_period")
    }
    if mode == "scan" and periods["min_period"] is not None:
        entry.refuse("sample.min_period is for monitor: a scan has its cycle")
    sampling = Sampling(mode, **periods)
    if sampling.min_period and sampling.max_period and sampling.min_period > sampling.max_period:
        entry.refuse("sample.min_period must not be longer than sample.max_period")
    return sampling


def _summaries(entry: Entry, cycle: float, log: LogPolicy) -> tuple[int, ...]:
    """What is asked for; by default the spans that have rows enough."""
    value = entry.take("summaries")
    if value is None:
        period = log.period or cycle * log.nth
        return tuple(span for span in SUMMARY_LEVELS.values() if span >= _ROWS_OF_A_SPAN * period)
    if isinstance(value, list) and all(isinstance(item, str) and item in SUMMARY_LEVELS for item in value):
        return tuple(span for name, span in SUMMARY_LEVELS.items() if name in value)
    names = ", ".join(f'"{name}"' for name in SUMMARY_LEVELS)
    entry.refuse(f"summaries must be a list of some of {names}; [] is none")
    return ()


def _deadband(entry: Entry, kind: str) -> Deadband | None:
    value = entry.take("deadband")
    if value is None:
        return None
    if kind in ("bit", "datetime") or is_text(kind) or kind.startswith("numeric"):
        entry.refuse(f"a deadband is for numbers, and this column is {kind}")
        return None
    if kind.endswith("[]"):
        entry.refuse(f"a deadband is for single values, and this column is {kind}")
        return None
    if is_number(value) and value >= 0:
        return Deadband(float(value))
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value)):
        return Deadband(float(percent[1]) / 100, relative=True)
    entry.refuse('deadband must be a number in the unit of the column, or a part as "0.5 %"')
    return None


def _retention(entry: Entry) -> Retention | None:
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


def _clock_tolerance(entry: Entry) -> timedelta | None:
    value = entry.take("clock_tolerance")
    if value is None:
        return Facility.clock_tolerance
    if value == "none":
        return None
    if isinstance(value, str) and (match := _TOLERANCE.fullmatch(value)):
        return timedelta(**{f"{match[2]}s": int(match[1])})
    entry.refuse(f'clock_tolerance \'{value}\' must be minutes, hours, days or weeks, as "1 day", or "none"')
    return None


def _seconds(entry: Entry, key: str, value: Any) -> float:
    if value is None:
        return 1.0
    if is_number(value) and SHORTEST <= value <= LONGEST:
        return float(value)
    entry.refuse(f"{key} must be a number of seconds, from a microsecond to a year")
    return 1.0
