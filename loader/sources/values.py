"""Converts readings to the types of a facility's columns: exactly, or not at all."""

import math
import struct
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ringlog.clients.readings import Reading, waveform
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Column

LARGEST_REAL = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def fit(value: Any, column: Column) -> Reading:
    """A value of any kind in the column's type. None: no reading. Raises TypeError or ValueError for a value
    of another type or out of range.
    """
    if value is None:
        return None
    if column.is_waveform:
        return waveform(value, column)
    if getattr(value, "ndim", 0):
        raise TypeError("an array does not fit a column")
    if column.is_text:
        return within(str(value), column)
    if column.type.kind is Kind.DATETIME:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise TypeError(f"{value} is not a time with a zone, which a datetime needs")
        return value.isoformat()
    if column.type.kind is Kind.NUMERIC:
        return decimal(str(value), column)
    if isinstance(value, str | bytes):
        raise TypeError(f"text does not fit a {column.type}")
    if column.type.is_float:
        return within(float(value), column)
    number = int(value)
    if float(value) != number and value != number:
        raise ValueError(f"{value} is not a whole number, the column is {column.type}")
    if column.type.kind is Kind.BIT:
        if number not in (0, 1):
            raise ValueError(f"{value} is not a bit")
        return bool(number)
    return within(number, column)


def decimal(text: str, column: Column) -> str:
    """A number that fits a numeric(p,s) without rounding. Raises ValueError."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    precision, scale = column.type.digits or 0, column.type.scale or 0
    if not number.is_finite():
        raise ValueError(f"'{text}' is not a number")
    if number.adjusted() >= precision - scale and number:
        raise ValueError(f"{text} is out of the range of {column.type}")
    if number != round(number, scale):
        raise ValueError(f"{text} has more digits after the decimal point than {column.type}")
    return f"{number:f}"


def within(value: int | float | str, column: Column) -> int | float | str:
    """The value, which has the column's kind. Raises ValueError if it is out of the type's range."""
    if isinstance(value, str):
        length = column.type.length
        if length is None:
            if "\0" in value:
                raise ValueError("a text must not contain a NUL")
            return value
        if len(value) > length or "\0" in value:
            raise ValueError(f"'{value}' is longer than varchar({length}) or contains a NUL")
    elif column.type.bits is not None:
        half = 1 << column.type.bits - 1
        if not -half <= value < half:
            raise ValueError(f"{value} is out of the range of {column.type}")
    elif column.type.kind is Kind.REAL and math.isfinite(value) and abs(value) > LARGEST_REAL:
        raise ValueError(f"{value} is out of the range of real")
    return value
