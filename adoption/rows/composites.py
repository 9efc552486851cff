"""Values that have more parts here than the driver gives: datetimeoffset and sql_variant.

Each is compared as one text that both sides write alike, and is stored as the text of a row of PostgreSQL.
"""

import struct
from datetime import UTC, datetime, timedelta

from psycopg import sql

DATETIMEOFFSET, SQL_VARIANT = "datetimeoffset", "sql_variant"
# by base type, what gives a value of it as a text without loss (SQL Server, "CAST and CONVERT": styles)
_AS_TEXT = {
    "float": "convert(nvarchar(4000), convert(float, {0}), 3)",
    "real": "convert(nvarchar(4000), convert(real, {0}), 3)",
    "money": "convert(nvarchar(4000), convert(decimal(19, 4), convert(money, {0})))",
    "smallmoney": "convert(nvarchar(4000), convert(decimal(10, 4), convert(smallmoney, {0})))",
    "datetime": "convert(nvarchar(4000), convert(datetime, {0}), 121)",
    "smalldatetime": "convert(nvarchar(4000), convert(smalldatetime, {0}), 120)",
    "datetime2": "convert(nvarchar(4000), convert(datetime2(7), {0}), 121)",
    "datetimeoffset": "convert(nvarchar(4000), convert(datetimeoffset(7), {0}), 121)",
    "date": "convert(nvarchar(4000), convert(date, {0}), 121)",
    "time": "convert(nvarchar(4000), convert(time(7), {0}), 121)",
    "binary": "convert(nvarchar(max), convert(varbinary(8000), {0}), 1)",
    "varbinary": "convert(nvarchar(max), convert(varbinary(8000), {0}), 1)",
}
_MICROSECONDS = len("2026-01-02 03:04:05.123456")


def variant_expression(column: str) -> str:
    """T-SQL that gives a sql_variant as base type, precision, scale, bytes, value, with colons between."""
    numbers = " + ':' + ".join(
        f"convert(nvarchar(10), convert(int, sql_variant_property({column}, '{each}')))"
        for each in ("Precision", "Scale", "MaxLength")
    )
    base = f"convert(nvarchar(128), sql_variant_property({column}, 'BaseType'))"
    cases = " ".join(f"when '{each}' then {text.format(column)}" for each, text in _AS_TEXT.items())
    value = f"case {base} {cases} else convert(nvarchar(4000), {column}) end"
    return f"{base} + ':' + {numbers} + ':' + {value}"


def variant(given: str) -> str:
    """A value of `variant_expression` in the form of `tsql.sql_variant`: the base type, a colon, the value.

    Raises ValueError.
    """
    base, precision, scale, size, value = given.split(":", 4)
    if base in ("decimal", "numeric"):
        base = f"{base}({precision},{scale})"
    elif base in ("datetime2", "datetimeoffset", "time"):
        base = f"{base}({scale})"
    elif base in ("char", "varchar", "binary", "varbinary"):
        base = f"{base}({size})"
    elif base in ("nchar", "nvarchar"):
        base = f"{base}({int(size) // 2})"
    match base.partition("(")[0]:
        case "float":
            value = repr(float(value))
        case "real":
            # the shortest text of a single that means the same
            single = _single(value)
            value = next(text for digits in range(1, 10) if _single(text := f"{single:.{digits}g}") == single)
        case "datetime" | "datetime2":
            value = value[:_MICROSECONDS].ljust(_MICROSECONDS, "0")
        case "time":
            value = value[: len("03:04:05.123456")]
        case "binary" | "varbinary":
            value = value.removeprefix("0x").lower()
        case "uniqueidentifier":
            value = value.lower()
    return f"{base}:{value}"


def offset(text: str) -> str:
    """An instant in UTC and the minutes that its clock was ahead, of `2026-01-02 03:04:05.1234567 +01:00`, of
    which the seventh digit is left out. Raises OverflowError."""
    time, _, ahead = text.rpartition(" ")
    value = datetime.fromisoformat(time[:_MICROSECONDS] + ahead)
    minutes = round((value.utcoffset() or timedelta()).total_seconds() / 60)
    moment = value.astimezone(UTC).replace(tzinfo=None)
    return f"{moment.isoformat(' ', 'microseconds')} {minutes}"


def stored(kind: str, value: object) -> object:
    """The value that COPY stores for a compared value."""
    if not isinstance(value, str):
        return value
    if kind == SQL_VARIANT:
        base, _, rest = value.partition(":")
        return _row(base, rest, "{}")
    if kind == DATETIMEOFFSET:
        moment, _, minutes = value.rpartition(" ")
        return _row(f"{moment}+00", minutes, "{}")
    return value


def compared(kind: str, column: sql.Composable) -> sql.Composable:
    """SQL that gives a stored value as it is compared."""
    if kind == SQL_VARIANT:
        return sql.SQL("({0}).base || ':' || ({0}).value").format(column)
    if kind == DATETIMEOFFSET:
        return sql.SQL(
            "to_char(({0}).moment at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || ' ' || ({0}).minutes"
        ).format(column)
    return column


def _single(text: str) -> float:
    single: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    return single


def _row(*parts: str) -> str:
    quoted = (part.replace("\\", "\\\\").replace('"', '\\"') for part in parts)
    return "(" + ",".join(f'"{part}"' for part in quoted) + ")"
