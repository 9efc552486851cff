"""Replay of recordings: one Parquet file per table, <table>.parquet.

Its columns are `time` and columns of the table by their name or signal name. Null is no reading. Times are
timestamps or ISO 8601 texts, and increase from row to row; without a zone they are of the facility's time
zone. A table with nanoseconds takes them from the times.
"""

import importlib.util
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from ringlog.loader.sources import Row, SourceError
from ringlog.loader.sources.replay import BLOCK_BYTES, BLOCK_ROWS, Replay
from ringlog.loader.sources.values import fit
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Column, Table

_VALUES = 100_000
"""in memory at a time"""


@dataclass(frozen=True)
class ParquetReplay(Replay):
    """Recordings as Parquet."""

    suffix: ClassVar[str] = "parquet"
    form: ClassVar[str] = "Parquet"

    def check(self, tables: Sequence[Table]) -> None:
        """Like Replay's; also raises SourceError if pyarrow is not installed."""
        if importlib.util.find_spec("pyarrow") is None:
            raise SourceError("pyarrow is not installed: pip install 'ringlog[parquet]'")
        # pyarrow starts threads, and writers are forked
        fork = multiprocessing.get_context("fork")
        answer, answering = fork.Pipe(duplex=False)
        process = fork.Process(target=self._check_apart, args=(tables, os.getpid(), answering))
        process.start()
        answering.close()
        try:
            error: Exception | None = answer.recv()
        except EOFError:
            process.join()
            error = SourceError(f"{self.folder}: reading the files ended with code {process.exitcode}")
        process.join()
        if error is not None:
            raise error

    def _check_apart(self, tables: Sequence[Table], parent: int, answering: Connection) -> None:
        """Sends the error of the files, or None. Ends with the parent process."""
        error: Exception | None = None
        try:
            for table in tables:
                for _ in self.read(table):
                    if os.getppid() != parent:
                        return
        except SourceError as found:
            error = found
        answering.send(error)

    def read(self, table: Table) -> Iterator[Sequence[Row]]:
        """All rows of the table's file, in order. Raises SourceError naming file, row and column."""
        import pyarrow as pa

        from ringlog.loader.sources.blocks import File

        recording = File(self.file(table), table, self.zone, _VALUES)
        if recording.numbered:
            raise SourceError(f"{recording.path}: table {table.name} has no column or signal 'seq_no'")
        for block in recording.blocks():
            names = block.schema.names
            columns = [
                _readings(block[column.name], column) if column.name in names else [None] * len(block)
                for column in table.columns
            ]
            times = block["time"].cast(pa.int64()).to_pylist()
            rows = [*map(Row.of, times, zip(*columns, strict=True))]
            together = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(len(row.content) for row in rows)))
            for begin in range(0, len(rows), together):
                yield rows[begin : begin + together]


def _readings(values: Any, column: Column) -> list[Any]:
    """The readings of a column's converted values."""
    if column.is_waveform or column.type.kind in (Kind.DATETIME, Kind.NUMERIC):
        return [fit(value, column) for value in values.to_pylist()]
    return list(values.to_pylist())
