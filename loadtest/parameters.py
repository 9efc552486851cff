"""Parameter tables in a load: their rows, and the tables for each reader."""

import json
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import sql

from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.parameters import Parameter, ParameterColumn

ROWS = 20
"""of each table"""
_BEGIN = datetime(1999, 1, 1, tzinfo=UTC)


def fill(connection: psycopg.Connection, facility: Facility) -> None:
    """Inserts the first rows of every parameter table, each table by a separate change."""
    for parameter in facility.parameters:
        procedure = sql.Identifier("ringlog", f"set_{parameter.name}_rows")
        with connection.transaction():
            connection.execute(
                sql.SQL("select {}(%s, 'first values')").format(procedure), [json.dumps(rows(parameter))]
            )


def rows(parameter: Parameter) -> list[dict[str, object]]:
    """The rows of a table in the form of `set_<p>_rows`, with different keys."""
    return [{column.name: _value(column, n) for column in parameter.columns} for n in range(1, ROWS + 1)]


def _value(column: ParameterColumn, n: int) -> object:
    if column.type.is_text:
        return f"{column.name[:3]}{n}"[-(column.type.length or 100) :]
    if column.type.kind is Kind.DATETIME:
        return (_BEGIN + timedelta(days=n)).isoformat()
    if column.type.kind is Kind.BIT:
        return n % 2 == 0
    if column.limits is None:
        return n
    low, high = column.limits
    value = low + (high - low) * n / (ROWS + 1)
    return value if column.type.is_float else round(value)


def of_a_reader(facility: Facility, index: int) -> tuple[str, ...]:
    """The parameter tables for the reader of one table: all readers together read all."""
    return tuple(parameter.name for parameter in facility.parameters[index :: len(facility.tables)])
