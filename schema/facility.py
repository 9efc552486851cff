"""The facility file: what is logged, read from TOML, checked, and held as frozen values.

docs/facility-files.md is the reference for those who write one.
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ringlog.procedures import OF_A_TABLE, OVER_ALL_TABLES

# PostgreSQL's own bounds, from its sources: NAMEDATALEN - 1, MaxHeapAttributeNumber, MaxHeapTupleSize,
# MaxAttrSize, and the system columns of every table.
NAME_BYTES = 63
TABLE_COLUMNS = 1600
ROW_BYTES = 8160
VARCHAR_LENGTH = 10_485_760
SYSTEM_COLUMNS = ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")
INTEGER_MAX = 2**31 - 1
SHORTEST, LONGEST = 1e-6, 366 * 86_400.0  # of cycles and periods, in seconds

KEY_COLUMNS = ("seq_no", "time")
"""What stands before the data columns of every ring and log."""

WIDTHS = {"real": 4, "double": 8, "int": 4, "smallint": 2, "bigint": 8, "bit": 1}
"""Column types of fixed width and their bytes in PostgreSQL; varchar(n) is the type of variable width."""

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
_VARCHAR = re.compile(r"varchar\(([1-9]\d*)\)")
_RETENTION = re.compile(r"([1-9]\d{0,5}) (day|week|month|year)s?")
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)
_PARTITION = re.compile(r".+_(\d{4}w\d{2}|default)")
_TABLE_NAME_BYTES = NAME_BYTES - max(len(name.format("")) for name in OF_A_TABLE.values())


class FacilityError(ValueError):
    """A facility file breaks rules. `problems` has a line for each, naming table, column and rule."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}: {problem}" for problem in self.problems))


@dataclass(frozen=True)
class LogPolicy:
    """Which rows put_<table> sends on to the log.

    `nth`: rows 1, 1 + nth, 1 + 2 nth, … of the ring; 1 is every row.
    `period`: in seconds; of each period, counted from 2000-01-01 00:00 UTC, the row that arrives first.
    """

    nth: int = 1
    period: float | None = None

    @property
    def every(self) -> bool:
        return self.nth == 1 and self.period is None


@dataclass(frozen=True)
class Retention:
    """How long log rows are kept, in units of the calendar. Its text is a PostgreSQL interval."""

    amount: int
    unit: str  # day, week, month or year

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}" + "s" * (self.amount > 1)


@dataclass(frozen=True)
class Sampling:
    """When a writer takes a row from its source.

    `scan` takes one each cycle; `monitor` takes one when something has changed, at least `min_period` seconds
    after the one before, and collects what changes within a cycle. With `max_period` or deadbands a row in
    which nothing has moved is left out, until the last one is `max_period` seconds old.
    """

    mode: str = "scan"
    min_period: float | None = None
    max_period: float | None = None


@dataclass(frozen=True)
class Deadband:
    """How far a reading must move to count as a change: in its unit, or as a part of the reading before."""

    distance: float
    relative: bool = False


@dataclass(frozen=True)
class Column:
    """A data column, which is a signal. `limits` are low and high in `unit`; nothing enforces them."""

    name: str
    signal: str
    type: str  # real, double, int, smallint, bigint, bit or varchar(n)
    unit: str = ""
    description: str = ""
    limits: tuple[float, float] | None = None
    deadband: Deadband | None = None


@dataclass(frozen=True)
class Table:
    """A ring of `rows` rows with its log; a new row comes every `cycle` seconds."""

    name: str
    rows: int
    cycle: float
    columns: tuple[Column, ...]
    """The data columns, without seq_no and time."""
    description: str = ""
    log: LogPolicy = field(default_factory=LogPolicy)
    retention: Retention | None = None
    """None keeps the log for ever."""
    sample: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True)
class Facility:
    """What a facility file says. `timezone` (IANA name) is meant by clients that send times without one."""

    name: str
    timezone: str
    tables: tuple[Table, ...]


def load_facility(path: str | Path) -> Facility:
    """Reads and checks a facility file. Raises FacilityError with every rule it breaks."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise FacilityError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise FacilityError(str(path), [f"is not TOML: {error}"]) from error
    problems: list[str] = []
    facility = _facility(_Entry(content, "", problems), path.stem)
    if problems:
        raise FacilityError(str(path), problems)
    return facility


class _Entry:
    """A TOML table on its way to a value: it hands out its keys and notes what is wrong with them.

    A wrong value is noted and replaced by a right one, so that reading goes on to the next mistake.
    """

    def __init__(self, content: dict[str, Any], where: str, problems: list[str]) -> None:
        self._content = dict(content)
        self._where = where
        self._problems = problems

    def refuse(self, rule: str) -> None:
        self._problems.append(f"{self._where}: {rule}" if self._where else rule)

    def take(self, key: str) -> Any:
        """The value; None when the key is missing."""
        return self._content.pop(key, None)

    def demand(self, key: str) -> Any:
        if key not in self._content:
            self.refuse(f"{key} is missing")
        return self.take(key)

    def text(self, key: str, default: str | None = "") -> str:
        """One line or more of text. Without a default the key is demanded."""
        value = self.demand(key) if default is None else self.take(key)
        if value is None:
            return default or ""
        if not isinstance(value, str):
            self.refuse(f"{key} must be text")
        elif not value.replace("\n", " ").isprintable():
            self.refuse(f"{key} must not hold control characters")
        else:
            return value
        return default or ""

    def entries(self, kind: str) -> Iterator["_Entry"]:
        """The elements of an array of TOML tables, which must not be empty."""
        value = self.take(kind)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            self.refuse(f"there must be at least one [[{f'table.{kind}' if self._where else kind}]]")
            return
        for number, item in enumerate(value, 1):
            name = item.get("name")
            where = f"{kind} {name}" if name and isinstance(name, str) else f"{kind} number {number}"
            yield _Entry(item, f"{self._where}, {where}" if self._where else where, self._problems)

    def end(self, kind: str) -> None:
        """Refuses the keys nobody asked for."""
        for key in self._content:
            self.refuse(f"'{key}' is no key of a {kind}")


def _facility(entry: _Entry, stem: str) -> Facility:
    name = entry.text("name", stem)
    timezone = entry.text("timezone", "UTC")
    try:
        ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        entry.refuse(f"timezone '{timezone}' is no name of the IANA time zone database")
    tables = []
    for table_entry in entry.entries("table"):
        tables.append(_table(table_entry))
    entry.end("facility")
    for twice in _repeated(table.name for table in tables):
        entry.refuse(f"two tables are named {twice}")
    owners: dict[str, str] = dict.fromkeys(OVER_ALL_TABLES, "all tables")
    for table in {table.name: table for table in tables}.values():
        for procedure in (pattern.format(table.name) for pattern in OF_A_TABLE.values()):
            if owners.setdefault(procedure, f"table {table.name}") != f"table {table.name}":
                entry.refuse(
                    f"table {table.name}: its procedure {procedure} would be one of {owners[procedure]} too"
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
    return Facility(name, timezone, tuple(tables))


def _table(entry: _Entry) -> Table:
    name = entry.text("name", None)
    _check_identifier(entry, name, _TABLE_NAME_BYTES, "the longest name of its procedures")
    if _PARTITION.fullmatch(name):
        entry.refuse("name must not end like a log's partition (_2024w07, _default)")
    description = entry.text("description")
    rows = _count(entry, "rows", entry.demand("rows"))
    cycle = _seconds(entry, "cycle", entry.demand("cycle"))
    log = _log_policy(entry, rows)
    retention = _retention(entry)
    sample = _sampling(entry)
    columns: list[Column] = []
    for column_entry in entry.entries("column"):
        columns.extend(_columns(column_entry, name))
    entry.end("table")
    for twice in _repeated(column.name for column in columns):
        entry.refuse(f"two columns are named {twice}")
    _fits_postgresql(entry, columns)
    return Table(name, rows, cycle, tuple(columns), description, log, retention, sample)


def _fits_postgresql(entry: _Entry, columns: Sequence[Column]) -> None:
    most = TABLE_COLUMNS - len(KEY_COLUMNS)
    if len(columns) > most:
        entry.refuse(f"{len(columns)} columns are too many: PostgreSQL's limit leaves {most} for data")
        return
    # The header, a bit for each column, seq_no, time, then each value at a multiple of its width.
    size = _aligned(23 + (len(columns) + len(KEY_COLUMNS) + 7) // 8, 8) + 16
    for column in columns:
        if column.type in WIDTHS:
            size = _aligned(size, WIDTHS[column.type]) + WIDTHS[column.type]
        elif varchar := _VARCHAR.fullmatch(column.type):
            # what is longer moves out of the row (TOAST); at most 4 bytes a character and one of length
            size += min(1 + 4 * int(varchar[1]), 24)
    size = _aligned(size, 8)
    if size > ROW_BYTES:
        entry.refuse(
            f"a row takes up to {size} bytes and PostgreSQL's page holds {ROW_BYTES}: split the table"
        )


def _aligned(size: int, width: int) -> int:
    return -(-size // width) * width


def _columns(entry: _Entry, table: str) -> Iterator[Column]:
    """The column of an entry, or the `count` columns it stands for."""
    pattern = entry.text("name", None)
    number = entry.take("count")
    count = 1 if number is None else _count(entry, "count", number)
    signal = entry.text("signal", f"{table}/{pattern}")
    kind = _column_type(entry)
    unit = entry.text("unit")
    description = entry.text("description")
    limits = _limits(entry, kind)
    deadband = _deadband(entry, kind)
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
    _check_identifier(entry, longest, NAME_BYTES, "a PostgreSQL name")
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
        )


def _check_identifier(entry: _Entry, name: str, longest: int, what: str) -> None:
    if name and not _IDENTIFIER.fullmatch(name):
        entry.refuse(f"name '{name}' must be a lower-case letter, then letters, digits and _")
    elif len(name) > longest:
        entry.refuse(f"name '{name}' has {len(name)} characters; {what} leaves {longest}")


def _column_type(entry: _Entry) -> str:
    value = entry.demand("type")
    if value is None:
        return ""
    if isinstance(value, str):
        varchar = _VARCHAR.fullmatch(value)
        if value in WIDTHS or (varchar and int(varchar[1]) <= VARCHAR_LENGTH):
            return value
    entry.refuse(f"type '{value}' is none of {', '.join(WIDTHS)}, varchar(n) with n to {VARCHAR_LENGTH}")
    return ""


def _limits(entry: _Entry, kind: str) -> tuple[float, float] | None:
    value = entry.take("limits")
    if value is None:
        return None
    if kind == "bit" or kind.startswith("varchar"):
        entry.refuse(f"limits are for numbers, and this column is {kind}")
    elif not isinstance(value, list) or len(value) != 2 or not all(_is_number(limit) for limit in value):
        entry.refuse("limits must be two numbers, [low, high]")
    elif not value[0] < value[1]:
        entry.refuse(f"limits must be low before high, not {value[0]} and {value[1]}")
    else:
        return float(value[0]), float(value[1])
    return None


def _log_policy(entry: _Entry, rows: int) -> LogPolicy:
    value = entry.take("log")
    if value is None or value == "every":
        return LogPolicy()
    if isinstance(value, dict) and set(value) == {"nth"}:
        nth = _count(entry, "log.nth", value["nth"])
        if rows % nth:
            # else the distance between two log rows would change where the ring begins again
            entry.refuse(f"rows ({rows}) must be a multiple of log.nth ({nth})")
        return LogPolicy(nth=nth)
    if isinstance(value, dict) and set(value) == {"period"}:
        return LogPolicy(period=_seconds(entry, "log.period", value["period"]))
    entry.refuse('log must be "every", { nth = rows } or { period = seconds }')
    return LogPolicy()


def _sampling(entry: _Entry) -> Sampling:
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


def _deadband(entry: _Entry, kind: str) -> Deadband | None:
    value = entry.take("deadband")
    if value is None:
        return None
    if kind == "bit" or kind.startswith("varchar"):
        entry.refuse(f"a deadband is for numbers, and this column is {kind}")
        return None
    if _is_number(value) and value >= 0:
        return Deadband(float(value))
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value)):
        return Deadband(float(percent[1]) / 100, relative=True)
    entry.refuse('deadband must be a number in the unit of the column, or a part as "0.5 %"')
    return None


def _retention(entry: _Entry) -> Retention | None:
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


def _count(entry: _Entry, key: str, value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INTEGER_MAX:
        return value
    entry.refuse(f"{key} must be a whole number from 1 to {INTEGER_MAX}")
    return 1


def _seconds(entry: _Entry, key: str, value: Any) -> float:
    if value is None:
        return 1.0
    if _is_number(value) and SHORTEST <= value <= LONGEST:
        return float(value)
    entry.refuse(f"{key} must be a number of seconds, from a microsecond to a year")
    return 1.0


def _is_number(value: Any) -> bool:
    """A number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _repeated(names: Iterator[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1 and name]
