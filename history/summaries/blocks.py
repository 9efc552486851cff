"""Reads spans from summary.<table>, and stores them as arrays in blocks: see schema.relations.summaries."""

import struct
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
from psycopg import pq, sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from ringlog.history.arrays import HEAD
from ringlog.history.summaries.spans import NAMES, Spans
from ringlog.schema.column_type import ColumnType
from ringlog.schema.layout import BLOCK, SUMMARIES

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_COUNTS = ("n", "nans", "nulls")


def read(
    connection: psycopg.Connection,
    table: str,
    level: int,
    columns: Sequence[str],
    numbers: np.ndarray,
    *,
    are_rows: bool = True,
) -> Spans:
    """The spans with rows. Rows from before a column was added have null in it, where the columns are those
    of rows (`are_rows`), and not signals with times of their own."""
    blocks = np.unique(numbers // BLOCK[level])
    stored = _read(connection, table, level, columns, blocks, are_rows)
    return _with_rows(stored.chosen(np.isin(stored.numbers, numbers)))


def store(
    connection: psycopg.Connection,
    table: str,
    level: int,
    columns: Sequence[str],
    spans: Spans,
    single: bool,
    *,
    are_rows: bool = True,
) -> Spans:
    """Stores spans in their blocks, in place of the previous ones. An empty block is not stored.
    Returns all spans of these blocks, as `read` would."""
    length = BLOCK[level]
    blocks = np.unique(spans.numbers // length)
    stored = _read(connection, table, level, columns, blocks, are_rows)
    places = np.searchsorted(stored.numbers, spans.numbers)
    for field in fields(Spans)[1:]:
        getattr(stored, field.name)[places] = getattr(spans, field.name)
    storage = sql.Identifier(SUMMARIES, table)
    connection.execute(
        sql.SQL(
            "delete from {} where level = %s and begins = any(%s) and (%s or column_name = any(%s))"
        ).format(storage),
        [level, [_begins(level, block) for block in blocks], are_rows, [*columns]],
    )
    statement = sql.SQL("copy {} (level, column_name, begins, {}) from stdin (format binary)").format(
        storage, sql.SQL(", ").join(map(sql.Identifier, NAMES))
    )
    counts, exact = ColumnType.of("int[]"), ColumnType.of("double[]")
    types = (
        dict.fromkeys(NAMES, ColumnType.of("real[]") if single else exact)
        | dict.fromkeys(_COUNTS, counts)
        | dict.fromkeys(("mean", "squares"), exact)
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for number, block in enumerate(blocks):
            part = slice(number * length, (number + 1) * length)
            begins = (_begins(level, block) - datetime(2000, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            arrays = {name: _arrays(getattr(stored, name)[part], types[name]) for name in NAMES}
            for name in ("nans", "nulls"):
                some = getattr(stored, name)[part].any(axis=0)
                arrays[name] = [
                    array if any_there else _NULL for array, any_there in zip(arrays[name], some, strict=True)
                ]
            there = (stored.n + stored.nans + stored.nulls)[part].any(axis=0)
            for place in np.flatnonzero(there).tolist():
                column = columns[place]
                encoded = column.encode()
                copy.write(
                    b"".join(
                        (
                            (3 + len(NAMES)).to_bytes(2),
                            b"\0\0\0\4" + level.to_bytes(4),
                            len(encoded).to_bytes(4) + encoded,
                            b"\0\0\0\x08" + begins.to_bytes(8, signed=True),
                            *(arrays[what][place] for what in NAMES),
                        )
                    )
                )
        copy.write(b"\xff\xff")
    return _with_rows(stored)


def _with_rows(spans: Spans) -> Spans:
    return spans.chosen(np.asarray((spans.n + spans.nans + spans.nulls).any(axis=1)))


def _begins(level: int, block: int) -> datetime:
    return EPOCH + timedelta(seconds=int(block) * BLOCK[level] * level)


def _read(
    connection: psycopg.Connection,
    table: str,
    level: int,
    columns: Sequence[str],
    blocks: np.ndarray,
    are_rows: bool,
) -> Spans:
    """All spans of these blocks."""
    length = BLOCK[level]
    shape = (len(blocks) * length, len(columns))
    values: dict[str, Any] = {
        name: np.zeros(shape, np.int64) if name in _COUNTS else np.full(shape, np.nan) for name in NAMES
    }
    place_of = {column: place for place, column in enumerate(columns)}
    first_of = {_begins(level, block): number * length for number, block in enumerate(blocks)}
    missing = np.ones(shape, bool)
    query = sql.SQL(
        "select column_name, begins, {} from {}"
        " where level = %s and begins = any(%s) and column_name = any(%s)"
    ).format(sql.SQL(", ").join(map(sql.Identifier, NAMES)), sql.Identifier(SUMMARIES, table))
    with connection.cursor(binary=True) as cursor:
        for oid in _ELEMENTS:
            # psycopg's own loader makes a Python object for each value, which takes ten times as long
            cursor.adapters.register_loader(oid, _Numbers)
        for column, begins, *arrays in cursor.execute(query, [level, [*first_of], [*columns]]):
            first = first_of[begins]
            missing[first : first + length, place_of[column]] = False
            for name, array in zip(NAMES, arrays, strict=True):
                if array is not None:
                    values[name][first : first + length, place_of[column]] = array
    if are_rows:
        rows = (values["n"] + values["nans"] + values["nulls"]).max(axis=1, keepdims=True)
        values["nulls"] = np.where(missing, rows, values["nulls"])
    numbers = (np.asarray(blocks)[:, None] * length + np.arange(length)).reshape(-1)
    return Spans(numbers, **values)


class _Numbers(Loader):
    """Loads arrays of numbers without nulls as numpy arrays."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> np.ndarray:
        # array_send's form: each value after its length
        return np.frombuffer(data, _ELEMENTS[self.oid], offset=HEAD)["value"]


_NULL = b"\xff\xff\xff\xff"

_ELEMENTS = {
    kind.oid: np.dtype([("length", ">i4"), ("value", f">{kind.numpy}")])
    for kind in map(ColumnType.of, ("int[]", "real[]", "double[]"))
}
"""elements of array_send's form by the array's OID"""


def _arrays(values: np.ndarray, kind: ColumnType) -> list[bytes]:
    """Each column as a binary array of one dimension, after its length, in array_send's form."""
    elements = np.empty((values.shape[1], values.shape[0]), _ELEMENTS[kind.oid])
    elements["length"] = elements["value"].itemsize
    elements["value"] = values.T
    head = struct.pack(">iiIii", 1, 0, kind.element.oid, values.shape[0], 1)
    contents = [head + column.tobytes() for column in elements]
    return [len(content).to_bytes(4) + content for content in contents]
