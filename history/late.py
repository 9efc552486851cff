"""Rows that arrived late for a cold week, compared with those of its file."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringlog.history import files
from ringlog.history.folder import Damaged

KEY = ("time", "seq_no")
_ORDER = [(name, "ascending") for name in KEY]


class Unlike(Damaged):
    """A value of a file does not fit the present type of its column."""


@dataclass(frozen=True)
class Found:
    """Indexes of the late rows whose keys the file already has, with equal or different values."""

    repeated: np.ndarray
    conflicting: np.ndarray


def merged(cold: Iterator[pa.RecordBatch], late: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of a file and late ones, ordered by time and seq_no; of two with the same key the file's.

    Columns that the file lacks are null.
    """
    late = late.sort_by(_ORDER).combine_chunks()
    for batch in cold:
        table = cast(late.schema, batch)
        if table.num_rows and late.num_rows:
            number = _until(late, table)
            before, late = late.slice(0, number), late.slice(number)
            mine, _ = _pairs(before, table)
            new = np.ones(number, bool)
            new[mine] = False
            if new.any():
                table = pa.concat_tables([table, before.filter(pa.array(new))]).sort_by(_ORDER)
        yield from table.combine_chunks().to_batches()
    yield from late.to_batches()


def found(cold: Iterator[pa.RecordBatch], late: pa.Table) -> Found:
    """Compares late rows, ordered by time and seq_no, with those of a file."""
    result = Found(np.zeros(late.num_rows, bool), np.zeros(late.num_rows, bool))
    for batch in cold:
        table = cast(late.schema, batch)
        mine, theirs = _pairs(late, table)
        same = _same_rows(late.take(mine), table.take(theirs))
        result.repeated[mine[same]] = True
        result.conflicting[mine[~same]] = True
    return result


def _same_rows(here: pa.Table, there: pa.Table) -> np.ndarray:
    same = np.ones(here.num_rows, bool)
    for name in here.schema.names:
        one, other = (rows[name].combine_chunks() for rows in (here, there))
        nulls = [each.is_null().to_numpy(zero_copy_only=False) for each in (one, other)]
        one, other = files.bits(one), files.bits(other)
        if pa.types.is_list(one.type):
            equal = np.array([a == b for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)], bool)
        else:
            equal = pc.equal(one, other).fill_null(True).to_numpy(zero_copy_only=False)
        same &= equal & (nulls[0] == nulls[1])
    return same


def cast(schema: pa.Schema, batch: pa.RecordBatch) -> pa.Table:
    """Rows of a file with the present columns of the log, in their types; columns missing in the file are
    null. Raises Unlike."""

    def column(field: pa.Field) -> pa.Array:
        if field.name not in batch.schema.names:
            return pa.nulls(batch.num_rows, field.type)
        values = batch[field.name]
        try:
            return values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise Unlike(
                f"column {field.name} was {values.type} when its week was archived and is {field.type} now:"
                f" {error}"
            ) from None

    return pa.table([column(field) for field in schema], schema=schema)


def _until(late: pa.Table, table: pa.Table) -> int:
    """The number of late rows that are not after the last row of a table."""
    time, seq_no = _keys(late)
    last = [column[-1] for column in _keys(table.slice(table.num_rows - 1))]
    return int(np.count_nonzero((time < last[0]) | ((time == last[0]) & (seq_no <= last[1]))))


def _pairs(late: pa.Table, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows with the same key in both."""
    mine, theirs = _keys(late), _keys(table)
    some = np.flatnonzero(np.isin(mine[0], theirs[0]))
    others = np.flatnonzero(np.isin(theirs[0], mine[0]))
    places = np.concatenate([some, others])
    time, seq_no = (np.concatenate([a[some], b[others]]) for a, b in zip(mine, theirs, strict=True))
    order = np.lexsort((np.arange(len(places)), seq_no, time))
    time, seq_no, places = time[order], seq_no[order], places[order]
    first = np.flatnonzero((time[1:] == time[:-1]) & (seq_no[1:] == seq_no[:-1]))
    return places[first], places[first + 1]


def _keys(rows: pa.Table) -> list[np.ndarray]:
    return [rows[name].cast(pa.int64()).to_numpy() for name in KEY]
