"""The rows of a table's files, ordered by time, samples by signal and time, as a source for DuckDB.

Each opened file's footer is compared with the manifest's digest, and each page has a checksum, so a damaged
file is an error that names it.
"""

import resource
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.parquet import files, late
from ringlog.history.archive_server.lists import File, Files
from ringlog.history.archive_server.statement import Relation
from ringlog.history.connection import plain
from ringlog.schema.column_type import ColumnType, Kind

_FIRST = 1000
"""rows of the first batch, after which DuckDB may stop"""
_LONGEST = 1 << 20
"""rows of a batch"""

_ROOM = 360 << 20
"""bytes in memory up to which a row group, of about files.GROUP_BYTES, is read as a whole"""
_ONE_AT_A_TIME = threading.Lock()

_COUNT = "rows:"
"""the column of rows that are only counted"""


class Rows:
    """The rows of a relation. They are read once, as DuckDB takes them."""

    def __init__(self, relation: Relation, given: Files, descending: bool | None) -> None:
        self._weeks = [
            week
            for week in (reversed(given.weeks) if descending else given.weeks)
            if (relation.start is None or week.ends > relation.start)
            and (relation.end is None or week.begins < relation.end)
        ]
        self._folder = Folder(given.folder) if self._weeks else None
        self._relation = relation
        self._descending = descending
        self._columns = [name.rpartition(":")[::2] for name in relation.columns]
        self._schema = pa.schema([(name, _arrow(kind)) for name, kind in self._columns])
        # a query with an order may need its first rows only
        self._size = self._longest if descending is None else _FIRST
        self.error: Exception | None = None
        """the error that ended the reading"""

    def reader(self) -> pa.RecordBatchReader:
        fields = [
            pa.field(name, each.type) for name, each in zip(self._relation.columns, self._schema, strict=True)
        ]
        schema = pa.schema(fields or [pa.field(_COUNT, pa.bool_())])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for week in self._weeks:
            try:
                for batch in self._week(week):
                    if not self._columns:
                        yield pa.record_batch([pa.nulls(batch.num_rows, pa.bool_())], schema)
                    else:
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            except MemoryError as error:
                self.error = error
                raise
            except (OSError, pa.ArrowException, ValueError, Damaged) as error:
                is_named = isinstance(error, Damaged) and not isinstance(error, late.Unlike)
                self.error = error if is_named else Damaged(f"{self._folder}/{week.name}: {error}")
                raise self.error from error
            except Exception as error:
                self.error = error
                raise

    @property
    def _longest(self) -> int:
        """The number of rows in a batch of about BATCH_BYTES."""
        width = sum(files.width(each.type) for each in self._schema) or 1
        return max(_FIRST, min(_LONGEST, files.BATCH_BYTES // width))

    def _week(self, week: File) -> Iterator[pa.RecordBatch]:
        assert self._folder is not None
        with self._folder.opened(week.name) as source, files.file_of(source, week.footer) as file:
            if file.metadata.num_rows != week.rows:
                raise ValueError(f"it has {file.metadata.num_rows} rows, not {week.rows}")
            yield from self._of_file(file)

    def _of_file(self, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        relation, schema = self._relation, file.schema_arrow
        groups = files.groups_of(file, schema, relation.start, relation.end, number=relation.number)
        if not self._columns:
            for number in groups:
                rows = file.metadata.row_group(number).num_rows
                yield pa.record_batch([pa.nulls(rows)], ["rows"])
            return
        existing = {*schema.names}  # Arrow makes the list each time
        # the times give the number of rows of a file that has none of the columns
        there = [name for name, _ in self._columns if name in existing] or ["time"]
        for number in reversed(groups) if self._descending else groups:
            for batch in self._of_group(file, number, there):
                yield from late.cast(self._schema, plain(batch)).combine_chunks().to_batches()
            self._size = self._longest

    def _of_group(self, file: pq.ParquetFile, number: int, names: list[str]) -> Iterator[pa.RecordBatch]:
        if not self._descending:
            yield from map(self._within, file.iter_batches(self._size, [number], names))
            return
        with _ONE_AT_A_TIME:
            if resident() > _ROOM:
                raise MemoryError
            whole = [self._within(batch) for batch in file.iter_batches(self._longest, [number], names)]
        yield from _backwards(whole, self._size)

    def _within(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        relation = self._relation
        return relation.form.within(batch, relation.start, relation.end, relation.number)


def resident() -> int:
    """Resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _backwards(batches: Sequence[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in reverse, in growing batches."""
    for batch in reversed(batches):
        end = batch.num_rows
        while end:
            begin = max(0, end - size)
            yield batch.slice(begin, end - begin).take(pa.array(np.arange(end - begin - 1, -1, -1)))
            end, size = begin, 2 * size


def _arrow(kind: str) -> pa.DataType:
    """The Arrow type of a type of PostgreSQL, text for numerics. Raises ValueError for other types than those
    of columns."""
    column = ColumnType.of_postgresql(kind)
    if column is None:
        raise ValueError(f"no column has the type {kind}")
    return pa.string() if column.kind is Kind.NUMERIC else column.arrow
