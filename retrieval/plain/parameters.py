"""Parameter tables: their columns, their rows now or at a time, every version of a row, snapshots."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain, groupby
from typing import Any

import orjson
import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection, records, rows, time_literal
from ringlog.retrieval.plain.forms import formed
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused

_COLUMNS = sql.SQL("select * from ringlog.find_parameters()")
_SNAPSHOTS = sql.SQL("select * from ringlog.snapshots()")


def tables(connection: Connection) -> list[dict[str, Any]]:
    """Every parameter table with its columns."""
    return [
        {
            "table": table,
            "columns": [
                {
                    "column": column["column_name"],
                    "key": column["is_key"],
                    "type": column["type"],
                    "unit": column["unit"],
                    "description": column["description"],
                    "limits": _limits(column),
                }
                for column in columns
            ],
        }
        for table, columns in groupby(records(connection, _COLUMNS), lambda row: str(row["table_name"]))
    ]


def current(connection: Connection, table: str, when: datetime | None, form: str) -> Iterator[Part]:
    """The rows of a table now, or as they were at a time. Raises Refused (404)."""
    _demand(connection, table)
    text = sql.SQL("select * from {}({})").format(
        sql.Identifier("ringlog", f"get_{table}" if when is None else f"get_{table}_at"),
        sql.SQL("") if when is None else time_literal(when),
    )
    return _in_form(connection, text, form)


def history(
    connection: Connection, table: str, start: datetime | None, end: datetime | None, form: str
) -> Iterator[Part]:
    """Every version of every row that was valid at some time from `start` on and before `end`, oldest first;
    None: no bound. Raises Refused (404).
    """
    _demand(connection, table)
    text = sql.SQL("select * from {}(from_time => {}, to_time => {})").format(
        sql.Identifier("ringlog", f"history_{table}"),
        *(sql.SQL("null") if bound is None else time_literal(bound) for bound in (start, end)),
    )
    return _in_form(connection, text, form)


def snapshots(connection: Connection) -> list[dict[str, Any]]:
    """The named states of all parameter tables, oldest first."""
    return records(connection, _SNAPSHOTS)


def _demand(connection: Connection, table: str) -> None:
    if all(known["table"] != table for known in tables(connection)):
        raise Refused(404, f"there is no parameter table {table[:60]!r}")


def _limits(column: dict[str, Any]) -> list[float | None] | None:
    limits = [column["limit_low"], column["limit_high"]]
    return None if limits == [None, None] else limits


def _in_form(connection: Connection, text: sql.Composable, form: str) -> Iterator[Part]:
    batches = rows(connection, text)
    if form == "json":
        return _json(batches)
    first = next(batches)
    return formed(form, first.schema, chain([first], batches))


def _json(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    separator = b"["
    for batch in batches:
        for row in batch.to_pylist():
            yield separator + orjson.dumps(row)
            separator = b",\n"
    yield b"[]\n" if separator == b"[" else b"]\n"
