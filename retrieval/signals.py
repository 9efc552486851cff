"""What is known of signals: search, and the description of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection, rows
from ringlog.retrieval.refused import Refused
from ringlog.retrieval.texts import query

LONGEST = 1000  # characters of a name or pattern


@dataclass(frozen=True)
class Signal:
    """A signal as it is now, or was last. `limits` are low and high in `unit`, None is none."""

    name: str
    table: str
    column: str
    type: str
    unit: str
    description: str
    limits: tuple[float, float] | None
    now: bool = True
    """whether it is still logged"""
    cycle: float | None = None
    """seconds from row to row of its log, about; None is unknown"""

    @property
    def is_number(self) -> bool:
        """Whether it is one number at a time: neither text nor a waveform."""
        return not self.type.startswith("varchar") and not self.type.endswith("[]")


def records(connection: Connection, text: sql.Composable) -> list[dict[str, Any]]:
    """All rows of a query's result, which must be small."""
    found: list[dict[str, Any]] = []
    for batch in rows(connection, text):
        found += batch.to_pylist()
    return found


def describe(connection: Connection, names: Sequence[str]) -> dict[str, Signal]:
    """These signals; those that never were are missing."""
    found = records(connection, query("describe", names=sql.Literal(list(names))))
    return {row["signal"]: _signal(row) for row in found}


def demand(connection: Connection, names: Sequence[str]) -> list[Signal]:
    """These signals in their order. Raises Refused (404) naming the first that never was."""
    known = describe(connection, names)
    for name in names:
        if name not in known:
            raise Refused(404, f"there is no signal {name!r}: /api/v1/signals?search=… finds signals")
    return [known[name] for name in names]


def search(connection: Connection, words: str, limit: int, offset: int = 0) -> list[Signal]:
    """Signals of today that hold all the words, in their name, table, description or unit."""
    text = query(
        "search",
        words=sql.Literal([word.lower() for word in words.split()]),
        limit=sql.Literal(limit),
        offset=sql.Literal(offset),
    )
    return [_signal(row) for row in records(connection, text)]


def matching(connection: Connection, pattern: str, limit: int | None = None) -> list[str]:
    """Names that fit a regular expression as a whole, in their order.

    A leading (?i) is for a match in any case. Raises ReadError (2201B) for what is no regular expression.
    """
    operator = "~"
    if pattern.startswith("(?i)"):
        operator, pattern = "~*", pattern.removeprefix("(?i)")
    text = query(
        "matching",
        operator=sql.SQL(operator),
        pattern=sql.Literal(f"^(?:{pattern})$"),
        limit=sql.SQL("all") if limit is None else sql.Literal(limit),
    )
    return [row["signal"] for row in records(connection, text)]


def latest(connection: Connection, table: str, columns: Sequence[str]) -> dict[str, Any] | None:
    """The newest row of a ring: `time` and these columns; None when it was never written."""
    text = query(
        "latest",
        columns=sql.SQL(", ").join(sql.Identifier("ring", column) for column in columns),
        ring=sql.Identifier("online", table),
    )
    found = records(connection, text)
    return found[0] if found else None


def column_types(batch: pa.RecordBatch) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in batch.schema}


def told_type(kind: str) -> str:
    """The column type as which a facility file's is told: numeric as double, datetime and text as varchar."""
    if kind.startswith("numeric"):
        return "double"
    return "varchar" if kind in ("datetime", "text") else kind


def _signal(row: dict[str, Any]) -> Signal:
    limits = None if row["limit_low"] is None else (row["limit_low"], row["limit_high"])
    cycle = row.get("cycle")
    if cycle is not None:
        cycle = max(cycle * row["log_nth"], row["log_period"] or 0.0)
    return Signal(
        row["signal"],
        row["table_name"],
        row["column_name"],
        told_type(row["type"]),
        row["unit"],
        row["description"],
        limits,
        row.get("now", True),
        cycle,
    )
