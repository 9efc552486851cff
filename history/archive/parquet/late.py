"""Rows that arrived late for a cold week, compared with those of its file."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringlog.history.archive.folder import Damaged
from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.forms import form_of


class Unlike(Damaged):
    """A value of a file does not fit the present type of its column."""


@dataclass(frozen=True)
class Found:
    """Indexes of the late rows whose keys the file already has, with equal or different values."""

    repeated: np.ndarray
    conflicting: np.ndarray


def merged(cold: Iterator[pa.RecordBatch], late: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of a file and late ones, ordered by their key; of two with the same key the file's.

    Columns that the file lacks are null.
    """
    order = form_of(late.schema.names).order
    late = late.sort_by(order).combine_chunks()
    for batch in cold:
        table = cast(late.schema, batch)
        if table.num_rows and late.num_rows:
            number = until(late, table)
            before, late = late.slice(0, number), late.slice(number)
            mine, _ = _pairs(before, table)
            new = np.ones(number, bool)
            new[mine] = False
            if new.any():
                table = pa.concat_tables([table, before.filter(pa.array(new))]).sort_by(order)
        yield from table.combine_chunks().to_batches()
    yield from late.to_batches()


def found(cold: Iterator[pa.RecordBatch], late: pa.Table) -> Found:
    """Compares late rows, ordered by their key, with those of a file."""
    result = Found(np.zeros(late.num_rows, bool), np.zeros(late.num_rows, bool))
    for batch in cold:
        table = cast(late.schema, batch)
        mine, theirs = _pairs(late, table)
        same = same_rows(late.take(mine), table.take(theirs))
        result.repeated[mine[same]] = True
        result.conflicting[mine[~same]] = True
    return result


def same_rows(here: pa.Table, there: pa.Table) -> np.ndarray:
    """Whether each row is the other's, bit for bit."""
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

    existing = {*batch.schema.names}  # Arrow makes the list each time

    def column(field: pa.Field) -> pa.Array:
        if field.name not in existing:
            return pa.nulls(batch.num_rows, field.type)
        values = batch[field.name]
        if values.type == field.type:  # casts of 200 columns take as long as reading ten rows
            return values
        try:
            return values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise Unlike(
                f"column {field.name} was {values.type} when its week was archived and is {field.type} now:"
                f" {error}"
            ) from None

    return pa.table([column(field) for field in schema], schema=schema)


def until(late: pa.Table, table: pa.Table) -> int:
    """The number of rows of `late`, ordered by their key, that are not after the last one of `table`."""
    form = form_of(late.schema.names)
    major, minor = form.keys(late)
    last = [column[-1] for column in form.keys(table.slice(table.num_rows - 1))]
    return int(np.count_nonzero((major < last[0]) | ((major == last[0]) & (minor <= last[1]))))


def _pairs(late: pa.Table, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows with the same key in both."""
    mine, theirs = map(form_of(late.schema.names).keys, (late, table))
    some, others = (
        np.flatnonzero(np.logical_and.reduce([*map(np.isin, one, other)]))
        for one, other in ((mine, theirs), (theirs, mine))
    )
    positions = np.concatenate([some, others])
    major, minor = (np.concatenate([a[some], b[others]]) for a, b in zip(mine, theirs, strict=True))
    order = np.lexsort((np.arange(len(positions)), minor, major))
    major, minor, positions = major[order], minor[order], positions[order]
    first = np.flatnonzero((major[1:] == major[:-1]) & (minor[1:] == minor[:-1]))
    return positions[first], positions[first + 1]
