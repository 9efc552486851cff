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

from ringlog.clients.readings import with_waveforms
from ringlog.gateway import _core
from ringlog.loader.sources import Row, SourceError
from ringlog.loader.sources.replay import BLOCK_BYTES, BLOCK_ROWS, Replay
from ringlog.loader.sources.values import fit
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Table

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
        from ringlog.loader.sources.blocks import File

        recording = File(self.file(table), table, self.zone, _VALUES)
        if recording.numbered:
            raise SourceError(f"{recording.path}: table {table.name} has no column or signal 'seq_no'")
        for block in recording.blocks():
            rows = _rows(block, table)
            longest = max((len(row.content) for row in rows), default=1)
            together = max(1, min(BLOCK_ROWS, BLOCK_BYTES // longest))
            for begin in range(0, len(rows), together):
                yield rows[begin : begin + together]


def _rows(block: Any, table: Table) -> list[Row]:
    """The rows of a block of converted columns."""
    import pyarrow as pa

    from ringlog.gateway.buffers import buffers_of

    # a value for each row, also where the file has no other column
    pieces: list[Any] = [("raw", buffers_of(pa.array(["["] * len(block), pa.string())))]
    packed: list[list[Any]] = []
    for index, column in enumerate(table.columns):
        pieces += [b","] if index else []
        if column.name not in block.schema.names:
            pieces.append(b"null")
            continue
        values = block[column.name]
        if column.is_waveform or column.type.kind in (Kind.DATETIME, Kind.NUMERIC):
            fitting = [fit(value, column) for value in values.to_pylist()]
            if column.is_packed:
                packed.append(fitting)
                lengths = [
                    f'{{"bytes":{len(each)}}}' if isinstance(each, bytes) else "null" for each in fitting
                ]
                pieces.append(("raw", buffers_of(pa.array(lengths, pa.string()))))
                continue
            values = pa.array(fitting, pa.string())
        pieces.append(("reading", buffers_of(values)))
    lines = _core.encode_lines([*pieces, b"]\n"]).decode().split("\n")[:-1]
    times = block["time"].cast(pa.int64()).to_pylist()
    if not packed:
        return [*map(Row, times, lines)]
    return [
        Row(moment, with_waveforms(line, [each for each in waveforms if each is not None]))
        for moment, line, *waveforms in zip(times, lines, *packed, strict=True)
    ]
