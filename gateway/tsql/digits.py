"""Precision and scale of decimals whose operands only PostgreSQL knows, as expressions of its SQL.

The scale of a quotient depends on the precision of both sides (SQL Server, "Precision, scale, and length"). A
column may be an int, whose digits are known once PostgreSQL has the query: tsql.precision_of(value, n) gives
those of whole numbers by their type, and n for a decimal.
"""

from collections.abc import Callable
from typing import TypeAlias

Digits: TypeAlias = tuple[str, str]
"""Precision and scale."""

Later: TypeAlias = Callable[[], Digits]
"""Written only where a quotient needs them: they grow with what they are of."""


def of_column(sql: str) -> Digits:
    """Of a value of unknown type: null when it turns out to be a decimal."""
    return of_result(sql, ("null", "null"))


def of_result(sql: str, otherwise: Digits) -> Digits:
    return f"tsql.precision_of({sql}, {otherwise[0]})", f"tsql.scale_of({sql}, {otherwise[1]})"


def combined(operator: str, left: Digits, right: Digits, sybase: bool) -> Digits:
    """Of left operator right, were it a decimal."""
    operands = f"{left[0]}, {left[1]}, {right[0]}, {right[1]}"
    sign = f"'{operator}', {'true' if sybase else 'false'}"
    return f"tsql.result_precision({sign}, {operands})", f"tsql.result_scale({sign}, {operands})"
