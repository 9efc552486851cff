"""The parts of a week that old rows make: rows merged with its file's, newest samples, summaries."""

import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from tempfile import TemporaryFile

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.manifest import ColdWeek
from ringlog.history.archive.parquet import files, late
from ringlog.history.incoming import Checksum
from ringlog.history.summaries.making_spans import enter_spans, spans_of
from ringlog.history.summaries.spans import Spans, combined
from ringlog.history.summaries.summary_table import SummaryTable
from ringlog.schema.column_type import ColumnType
from ringlog.schema.layout import BLOCK
from ringlog.schema.relations.partitions import Week

AHEAD = 4
"""batches that are read ahead of the writing"""
_SUMMED = 200_000
"""values that are summarised at once: a processor's cache holds them"""


def counted_by(batches: Iterator[pa.RecordBatch], checksum: Checksum) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        checksum.add(batch)
        yield batch


class Merging:
    """Merges received rows with those of the week's file."""

    def __init__(self, folder: Folder, old: ColdWeek) -> None:
        self._cold = files.read(folder, old.file, footer=old.footer)
        self._held: pa.RecordBatch | None = None
        """rows of the file that were read and not merged"""
        self.repeated = 0
        self.conflicting = 0

    def batches(self, came: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows, ordered by their key; of two with one key the file's."""
        schema = None
        for batch in came:
            schema, left = batch.schema, pa.table(batch)
            while left.num_rows and (cold := self._next()) is not None:
                count = late.until(pa.table(cold), left)
                if count < cold.num_rows:
                    self._held = cold.slice(count)
                if not count:
                    break
                cold = cold.slice(0, count)
                count = late.until(left, pa.table(cold))
                yield from self._merged(cold, left.slice(0, count))
                left = left.slice(count)
            yield from left.to_batches()
        while schema is not None and (cold := self._next()) is not None:
            yield from late.cast(schema, cold).to_batches()

    def _next(self) -> pa.RecordBatch | None:
        held, self._held = self._held, None
        return next(self._cold, None) if held is None else held

    def _merged(self, cold: pa.RecordBatch, came: pa.Table) -> Iterator[pa.RecordBatch]:
        existing = late.found(iter([cold]), came)
        self.repeated += int(existing.repeated.sum())
        self.conflicting += int(existing.conflicting.sum())
        return late.merged(iter([cold]), came)


class Newest:
    """The newest of the samples of each signal, by its number."""

    def __init__(self, table: str, kind: ColumnType) -> None:
        self._table = table
        self._kind = kind
        self._newest: dict[int, pa.RecordBatch] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        numbers = batch["number"].to_numpy()
        for position in np.flatnonzero(np.append(numbers[1:] != numbers[:-1], [True])):
            self._newest[int(numbers[position])] = batch.slice(int(position), 1)

    def store(self, connection: psycopg.Connection, week: Week) -> None:
        """Enters them where a signal's newest archived sample is older, and marks the week's summaries for
        housekeeping."""
        if not self._newest:
            return
        rows = pa.Table.from_batches([*self._newest.values()])
        times = rows["time"].cast(pa.int64()).to_numpy() * 1000 + rows["nanoseconds"].to_numpy()
        query = sql.SQL(
            'insert into ringlog.last_archived as known (number, table_name, "time", value, severity, status)'
            " values (%s, {table}, %s, (%s::{kind})::text, %s, %s)"
            ' on conflict (number) do update set "time" = excluded."time", value = excluded.value,'
            " severity = excluded.severity, status = excluded.status"
            ' where excluded."time" > known."time"'
        ).format(table=sql.Literal(self._table), kind=sql.SQL(self._kind.sql))
        alarms = [rows[name].to_pylist() for name in ("severity", "status")]
        values = [rows["number"].to_pylist(), times.tolist(), rows["value"].to_pylist(), *alarms]
        with connection.cursor() as cursor:
            cursor.executemany(query, [*zip(*values, strict=True)])
        connection.execute(
            'insert into ringlog.summary_mark (table_name, "time") select table_name, moment'
            " from ringlog.summarised, generate_series(%s::timestamptz,"
            " least(%s, until) - interval '1 us', levels[1] * interval '1 s') as moment"
            " where table_name = %s and levels <> '{}'",
            [week.start, week.end, self._table],
        )


class Summaries:
    """The summaries of a week's rows, made by a thread of `pool` and kept in a file until they are stored."""

    def __init__(self, table: SummaryTable | None, pool: ThreadPoolExecutor) -> None:
        self._table = table
        self._pool = pool
        self._spool = TemporaryFile()  # noqa: SIM115 - until close
        self._parts: list[Spans] = []
        self._count = 0
        self._futures: list[Future[None]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if self._table is None:
            return
        while len(self._futures) >= AHEAD:
            self._futures.pop(0).result()
        self._futures.append(self._pool.submit(self._add, self._table, batch))

    def _add(self, table: SummaryTable, batch: pa.RecordBatch) -> None:
        step = max(1, _SUMMED // len(table.columns))
        for begin in range(0, batch.num_rows, step):
            self._parts.append(spans_of(table, batch.slice(begin, step)))
            block = BLOCK[table.levels[0]]
            self._count += len(self._parts[-1])
            is_block_over = self._parts[0].numbers[0] // block != self._parts[-1].numbers[-1] // block
            if is_block_over and self._count * len(table.columns) > _SUMMED:
                self._flush(block)

    def _flush(self, block: int | None = None) -> None:
        """Writes the spans to the file; with `block` only those of complete blocks of so many spans."""
        if not self._parts:
            return
        spans = combined(Spans.together(self._parts), 1)
        over = (
            np.ones(len(spans), bool)
            if block is None
            else spans.numbers // block < spans.numbers[-1] // block
        )
        pickle.dump(spans.chosen(over), self._spool, pickle.HIGHEST_PROTOCOL)
        self._parts = [] if block is None else [spans.chosen(~over)]
        self._count = sum(map(len, self._parts))

    def finish(self) -> None:
        """Waits for the thread."""
        for future in self._futures:
            future.result()
        self._futures = []
        self._flush()

    def store(self, connection: psycopg.Connection) -> None:
        """Stores the spans; again after a transaction that was rolled back."""
        if self._table is not None:
            enter_spans(connection, self._table, self._read())

    def _read(self) -> Iterable[Spans]:
        self._spool.seek(0)
        while True:
            try:
                yield pickle.load(self._spool)
            except EOFError:
                return

    def close(self) -> None:
        self._spool.close()
