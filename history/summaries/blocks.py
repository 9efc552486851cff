"""Reads spans from summary.<table>, and stores them as arrays in blocks: see schema.relations.summaries."""

import struct
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq, sql

from ringlog.history.arrays import HEAD
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.history.summaries.spans import COUNTS, NAMES, Spans, no_figures
from ringlog.schema.column_type import TYPES, ColumnType
from ringlog.schema.layout import BLOCK, SUMMARIES
from ringlog.schema.moments import EPOCH, microseconds


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
    return stored.chosen(np.isin(stored.numbers, numbers) & stored.have_rows)


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
        | dict.fromkeys(COUNTS, counts)
        | dict.fromkeys(("mean", "squares"), exact)
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for number, block in enumerate(blocks):
            part = slice(number * length, (number + 1) * length)
            begins = microseconds(_begins(level, block)) - POSTGRES_EPOCH
            arrays = {name: _arrays(getattr(stored, name)[part], types[name]) for name in NAMES}
            for name in ("nans", "nulls"):
                some = getattr(stored, name)[part].any(axis=0)
                arrays[name] = [
                    array if any_there else _NULL for array, any_there in zip(arrays[name], some, strict=True)
                ]
            there = stored.rows[part].any(axis=0)
            for index in np.flatnonzero(there).tolist():
                column = columns[index]
                encoded = column.encode()
                copy.write(
                    b"".join(
                        (
                            (3 + len(NAMES)).to_bytes(2),
                            b"\0\0\0\4" + level.to_bytes(4),
                            len(encoded).to_bytes(4) + encoded,
                            b"\0\0\0\x08" + begins.to_bytes(8, signed=True),
                            *(arrays[what][index] for what in NAMES),
                        )
                    )
                )
        copy.write(b"\xff\xff")
    return stored.chosen(stored.have_rows)


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
    begins = [_begins(level, block) for block in blocks]
    with psycopg.RawCursor(connection) as cursor:
        result = cursor.execute(query_of(table).encode(), [level, [*columns], begins], binary=True).pgresult
        assert result is not None
        values, is_stored = figures_of(result, level, columns, blocks)
    if are_rows:
        rows = (values["n"] + values["nans"] + values["nulls"]).max(axis=1, keepdims=True)
        values["nulls"] = np.where(is_stored, values["nulls"], rows)
    numbers = (np.asarray(blocks)[:, None] * BLOCK[level] + np.arange(BLOCK[level])).reshape(-1)
    return Spans(numbers, **values)


@cache
def query_of(table: str) -> str:
    """The query of blocks for `figures_of`, by their level, columns and begins."""
    return (
        sql.SQL(
            "select column_name, begins, {} from {}"
            " where level = $1 and column_name = any($2) and begins = any($3)"
        )
        .format(sql.SQL(", ").join(map(sql.Identifier, NAMES)), sql.Identifier(SUMMARIES, table))
        .as_string()
    )


def figures_of(
    result: pq.abc.PGresult, level: int, columns: Sequence[str], blocks: np.ndarray
) -> tuple[dict[str, Any], NDArray[np.bool_]]:
    """The figures of all spans of these blocks by their NAMES, and a mask of the stored ones, each of shape
    (spans, columns). The result has column_name, begins and NAMES, in binary.

    Arrays are decoded together: a Python object for each value would take ten times as long."""
    length = BLOCK[level]
    shape = len(blocks) * length, len(columns)
    values = no_figures(shape)
    is_stored = np.zeros(shape, bool)
    position_of = {name.encode(): position for position, name in enumerate(columns)}
    rows = range(result.ntuples)
    column = np.array([position_of[result.get_value(row, 0) or b""] for row in rows], np.int64)
    times = np.frombuffer(b"".join(result.get_value(row, 1) or b"" for row in rows), ">i8") + POSTGRES_EPOCH
    block = np.searchsorted(blocks, times // (level * length * 1_000_000))
    spans = (block * length)[:, None] + np.arange(length)
    is_stored[spans, column[:, None]] = True
    for field, name in enumerate(NAMES, 2):
        contents = [result.get_value(row, field) for row in rows]
        exists = np.array([content is not None for content in contents], bool)
        if exists.any():
            numbers = _numbers([*filter(None, contents)], length)
            values[name][spans[exists], column[exists, None]] = numbers
    return values, is_stored


def _numbers(contents: list[bytes], length: int) -> NDArray[Any]:
    """Arrays of one type and `length` without nulls, in array_send's form, one per row."""
    figure = TYPES[int.from_bytes(contents[0][8:12])].numpy
    element = np.dtype([("length", ">i4"), ("value", f">{figure}")])
    array = np.dtype([("head", f"V{HEAD}"), ("values", element, (length,))])
    return np.frombuffer(b"".join(contents), array)["values"]["value"]


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
