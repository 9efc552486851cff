"""T-SQL translated and run directly on PostgreSQL: many statements quickly, without variables."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg

from ringlog.gateway._core import translate


def run(connection: psycopg.Connection[Any], text: str, *, sybase: bool = False) -> list[list[list[Any]]]:
    """The rows of each result of a batch."""
    results = []
    for statement in translate(text, database="online", sybase=sybase):
        cursor = psycopg.RawCursor(connection).execute(statement.encode())
        if cursor.description is not None:
            results.append([list(row) for row in cursor.fetchall()])
    return results


def cell(connection: psycopg.Connection[Any], expression: str, *, sybase: bool = False) -> Any:
    ((row,),) = run(connection, f"select {expression}", sybase=sybase)
    return row[0]


def shown(value: Any) -> str:
    """A value in the form of the tables of statements."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(int(value))
        case datetime():
            value = value.replace(tzinfo=None)
            text: str = value.isoformat(" ", "microseconds" if value.microsecond % 1000 else "milliseconds")
            return text.removesuffix(".000")
        case date() | time():
            return value.isoformat()
        case bytes():
            return f"0x{value.hex().upper()}"
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case UUID():
            return str(value).upper()
    return str(value)
