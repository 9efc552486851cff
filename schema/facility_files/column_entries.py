"""Reads the columns of a facility file's tables, and checks that a row fits a page of PostgreSQL."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import KEY_COLUMNS, MOST_POINTS, Column, Deadband
from ringlog.schema.facility_files.entries import (
    IDENTIFIER,
    NAME_BYTES,
    ROW_BYTES,
    SYSTEM_COLUMNS,
    TABLE_COLUMNS,
    Entry,
    check_identifier,
    column_type,
    count_of,
    is_number,
    limits_of,
)

_ANY = ColumnType(Kind.INT)  # in place of an invalid type
_WITHOUT_DEADBAND = (Kind.BIT, Kind.DATETIME, Kind.NUMERIC)
_WITH_STATES = (Kind.BIT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)


def columns_of(entry: Entry, table: str, byte_order: str) -> Iterator[Column]:
    """The column of an entry, or the `count` columns it stands for."""
    pattern = entry.text("name", None)
    number = entry.take("count")
    count = 1 if number is None else count_of(entry, "count", number)
    signal = entry.text("signal", f"{table}/{pattern}")
    kind = column_type(entry)
    points, compress = points_of(entry, kind), _compress(entry, kind)
    unit = entry.unit()
    description = entry.text("description")
    limits, alarm_limits = limits_of(entry, kind), limits_of(entry, kind, "alarm_limits")
    if limits and alarm_limits and not alarm_limits[0] <= limits[0] < limits[1] <= alarm_limits[1]:
        entry.refuse("alarm_limits must be around limits")
    states = states_of(entry, kind)
    held = entry.flag("held")
    if held and kind is not None and not kind.is_number:
        entry.refuse(f"held is for single numbers, and this column is {kind}")
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
            name=pattern.replace("{n}", n),
            signal=signal.replace("{n}", n),
            type=kind or _ANY,
            unit=unit,
            description=description.replace("{n}", n),
            limits=limits,
            alarm_limits=alarm_limits,
            states=states,
            held=held,
            deadband=deadband,
            points=points,
            compress=compress,
            byte_order=byte_order,
            renamed_from=former.replace("{n}", n) or None,
            retired=retired,
        )


def points_of(entry: Entry, kind: ColumnType | None) -> int | None:
    """The most points of a waveform."""
    points = _of_waveform(entry, kind, "points")
    if kind is None or not kind.is_array:
        return None
    if not isinstance(points, int) or isinstance(points, bool) or not 1 <= points <= MOST_POINTS:
        entry.refuse(f"a waveform needs points, the most it may have, from 1 to {MOST_POINTS}")
        return 1
    return points


def _compress(entry: Entry, kind: ColumnType | None) -> bool:
    """Whether a waveform is compressed."""
    compress = _of_waveform(entry, kind, "compress")
    if kind is None or not kind.is_array:
        return False
    if compress not in (None, True, False):
        entry.refuse("compress must be true or false")
    return bool(compress)


def _of_waveform(entry: Entry, kind: ColumnType | None, key: str) -> Any:
    value = entry.take(key)
    if value is not None and kind is not None and not kind.is_array:
        entry.refuse(f"{key} is for waveforms, and this is {kind}")
    return value


def states_of(entry: Entry, kind: ColumnType | None) -> tuple[tuple[int, str], ...]:
    """Names of the values of a column, in the order of the values."""
    value = entry.take("states")
    if value is None:
        return ()
    if kind is not None and kind.kind not in _WITH_STATES:
        entry.refuse(f"states are for whole numbers and bits, and this column is {kind}")
        return ()
    is_right = isinstance(value, dict) and all(
        _WHOLE.fullmatch(number) and isinstance(name, str) and name and name.isprintable()
        for number, name in value.items()
    )
    if not is_right or not value:
        entry.refuse('states must be names of whole numbers, as { 0 = "off", 1 = "standby" }')
        return ()
    return tuple(sorted((int(number), name) for number, name in value.items()))


def _deadband(entry: Entry, kind: ColumnType | None) -> Deadband | None:
    value = entry.take("deadband")
    if value is None:
        return None
    if kind is not None and (kind.is_text or (kind.kind in _WITHOUT_DEADBAND and not kind.is_array)):
        entry.refuse(f"a deadband is for numbers, and this column is {kind}")
        return None
    if kind is not None and kind.is_array:
        entry.refuse(f"a deadband is for single values, and this column is {kind}")
        return None
    if is_number(value) and value >= 0:
        return Deadband(float(value))
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value)):
        return Deadband(float(percent[1]) / 100, relative=True)
    entry.refuse('deadband must be a number in the unit of the column, or a part as "0.5 %"')
    return None


def check_row_size(entry: Entry, columns: Sequence[Column]) -> None:
    most = TABLE_COLUMNS - len(KEY_COLUMNS)
    if len(columns) > most:
        entry.refuse(f"{len(columns)} columns are too many: PostgreSQL's limit leaves {most} for data")
        return
    # The header, a bit for each column, seq_no, time, then each value at a multiple of its width.
    size = _aligned(23 + (len(columns) + len(KEY_COLUMNS) + 7) // 8, 8) + 16
    for column in columns:
        if (width := column.type.width) is not None:
            size = _aligned(size, width) + width
        else:
            size += _longest(column.type)
    size = _aligned(size, 8)
    if size > ROW_BYTES:
        entry.refuse(
            f"a row takes up to {size} bytes and PostgreSQL's page holds {ROW_BYTES}: split the table"
        )


def _longest(kind: ColumnType) -> int:
    """The most bytes in the row of a type of variable width."""
    if kind.digits is not None:
        # a header of 3 bytes, and 2 for every four digits on either side of the point
        return 3 + 2 * (-(-kind.digits // 4) + 1)
    if kind.length is not None and not kind.is_array:
        # a longer text moves out of the row (TOAST); at most 4 bytes a character and one of length
        return min(1 + 4 * kind.length, 24)
    # a text of any length and a waveform move out of the row too
    return 24


def _aligned(size: int, width: int) -> int:
    return -(-size // width) * width
