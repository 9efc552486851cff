"""Parameter tables of a facility file: set points, calibrations, device data.

Few rows, changed by people and programs; every change is kept. docs/how-to/parameters.md is the reference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ringlog.procedures.parameters import OF_A_PARAMETER
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility_files.entries import (
    NAME_BYTES,
    SYSTEM_COLUMNS,
    Entry,
    check_identifier,
    column_type,
    count_of,
    limits_of,
    repeated,
)

MOST_COLUMNS = 1000
"""Data columns of a parameter table: its views have these and a dozen of their own."""

LONGEST_KEY = 200
"""Characters of a text in a key."""

_NAME_BYTES = NAME_BYTES - max(len(name.format("")) for name in OF_A_PARAMETER.values())
_ROW_TYPE = "_row"
_KEYS = (Kind.INT, Kind.SMALLINT, Kind.BIGINT)
_ANY = ColumnType(Kind.INT)  # in place of an invalid type

TAKEN = (
    "version",
    "expected",
    "changed",
    "changed_by",
    "change",
    "change_kind",
    "valid",
    "valid_from",
    "valid_to",
    "ended",
    "ended_by",
    "program",
    "machine",
    "comment",
    "clear",
    "time",
    "from_time",
    "to_time",
    "rows",
    "column_name",
    "value_before",
    "value_after",
)
"""Reserved names: further columns and arguments of the procedures and views."""


@dataclass(frozen=True)
class ParameterColumn:
    """A column of a parameter table. No value outside `limits` (low and high, in `unit`) is stored."""

    name: str
    type: ColumnType
    unit: str = ""
    description: str = ""
    limits: tuple[float, float] | None = None

    @property
    def may_be_nan(self) -> bool:
        return self.type.is_float or self.type.kind is Kind.NUMERIC


@dataclass(frozen=True)
class Parameter:
    """A parameter table. The columns of `key` identify its rows."""

    name: str
    key: tuple[str, ...]
    columns: tuple[ParameterColumn, ...]
    """all of them, those of the key too, in the file's order"""
    description: str = ""

    @property
    def key_columns(self) -> tuple[ParameterColumn, ...]:
        """In the order of `key`."""
        named = {column.name: column for column in self.columns}
        return tuple(named[name] for name in self.key)

    @property
    def data_columns(self) -> tuple[ParameterColumn, ...]:
        return tuple(column for column in self.columns if column.name not in self.key)


def parameters_of(entry: Entry) -> Iterator[Parameter]:
    """The `[[parameter]]` tables of a facility file."""
    for parameter in entry.entries("parameter", needed=False):
        read = _parameter(parameter)
        if read is not None:
            yield read


def procedures_of(parameter: Parameter) -> Mapping[str, str]:
    """The names of a parameter table's procedures, by their files'."""
    return {file: pattern.format(parameter.name) for file, pattern in OF_A_PARAMETER.items()}


def _parameter(entry: Entry) -> Parameter | None:
    name = entry.text("name", None)
    check_identifier(entry, name, _NAME_BYTES, "the longest name of its procedures")
    if name.endswith(_ROW_TYPE):
        entry.refuse(f"name must not end in {_ROW_TYPE}, the ending of row types")
    description = entry.text("description")
    key = _key(entry)
    columns: list[ParameterColumn] = []
    for column in entry.entries("column", "parameter"):
        columns.extend(_columns(column))
    entry.end("parameter")
    for twice in repeated(column.name for column in columns):
        entry.refuse(f"two columns are named {twice}")
    known = {column.name: column for column in columns}
    for part in key:
        if part not in known:
            entry.refuse(f"key '{part}' is none of its columns")
        else:
            _check_key(entry, known[part])
    parameter = Parameter(name, key, tuple(columns), description)
    if any(part not in known for part in key) or not key:
        return None
    if not 1 <= len(parameter.data_columns) <= MOST_COLUMNS:
        entry.refuse(f"besides its key it must have 1 to {MOST_COLUMNS} columns")
    return parameter


def _key(entry: Entry) -> tuple[str, ...]:
    value = entry.demand("key")
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        entry.refuse('key must be the name of a column, or a list of them, as ["device", "mode"]')
        return ()
    for twice in repeated(iter(names)):
        entry.refuse(f"key names {twice} twice")
    return tuple(names)


def _check_key(entry: Entry, column: ParameterColumn) -> None:
    if column.type.kind is Kind.VARCHAR:
        if (column.type.length or 0) > LONGEST_KEY:
            entry.refuse(f"column {column.name}: a text of a key has at most {LONGEST_KEY} characters")
    elif column.type.kind not in _KEYS:
        entry.refuse(f"column {column.name}: a key is of {', '.join(_KEYS)} or varchar(n), not {column.type}")


def _columns(entry: Entry) -> Iterator[ParameterColumn]:
    """The column of an entry, or the `count` columns it stands for."""
    pattern = entry.text("name", None)
    number = entry.take("count")
    count = 1 if number is None else count_of(entry, "count", number)
    kind = column_type(entry)
    if kind is not None and kind.is_array:
        entry.refuse("a parameter is a single value, no waveform")
        kind = None
    unit = entry.unit()
    description = entry.text("description")
    limits = limits_of(entry, kind)
    entry.end("column")
    if not pattern:
        return
    if ("{n}" in pattern) != (number is not None):
        entry.refuse("name has {n} where a count is given, and only there")
        return
    if count > MOST_COLUMNS:
        entry.refuse(f"count {count} is more than the {MOST_COLUMNS} columns that a parameter table may have")
        return
    longest = pattern.replace("{n}", str(count))
    check_identifier(entry, longest, NAME_BYTES, "a PostgreSQL name")
    if longest in TAKEN or longest in SYSTEM_COLUMNS:
        entry.refuse(f"name is taken: every parameter table has {longest} by itself, or its procedures do")
    for n in (str(n) for n in range(1, count + 1)):
        name = pattern.replace("{n}", n)
        yield ParameterColumn(name, kind or _ANY, unit, description.replace("{n}", n), limits)
