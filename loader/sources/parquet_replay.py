"""Replay of recordings: one Parquet file per table, <table>.parquet.

Its columns are `time` and columns of the table by their name or signal name. Null is no reading. Times are
timestamps or ISO 8601 texts, and increase from row to row; without a zone they are of the facility's time
zone. A table with nanoseconds takes them from the times.
"""

import importlib.util
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from ringlog.loader.sources import Row, SourceError
from ringlog.loader.sources.replay import Replay, below_microseconds, in_zone, moment_from, places_of
from ringlog.loader.sources.values import fit
from ringlog.schema.facility import Table

# Rows in memory at a time.
_BATCH = 1000


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

    def read(self, table: Table) -> Iterator[Row]:
        """All rows of the table's file, in order. Raises SourceError naming file, row and column."""
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        file = self.file(table)
        row = 0
        try:
            with ParquetFile(file) as recording:
                names = recording.schema_arrow.names
                if "time" not in names:
                    raise ValueError("there is no column 'time'")
                others = [name for name in names if name != "time"]
                places = places_of(table, others)
                previous: datetime | None = None
                # a column of the file takes precedence over the nanoseconds of its times
                below = None if table.nanoseconds in places else table.nanoseconds
                for batch in recording.iter_batches(_BATCH, use_threads=False):
                    moments = self._moments(batch.column(names.index("time")), below is not None)
                    columns = [batch.column(names.index(name)).to_pylist() for name in others]
                    for values in zip(*columns, strict=True) if columns else [()] * batch.num_rows:
                        row += 1
                        moment, nanoseconds = next(moments)
                        if previous is not None and moment <= previous:
                            raise ValueError(f"time {moment.isoformat()} is not later than the row before")
                        readings = _readings(table, places, values)
                        if below is not None:
                            readings[below] = nanoseconds
                        yield Row(moment, tuple(readings))
                        previous = moment
        except OSError as error:
            raise SourceError(f"{file}: {error.strerror or error}") from None
        except (ValueError, TypeError, OverflowError, ArrowException) as error:
            where = f", row {row}" if row else ""
            raise SourceError(f"{file}{where}: {error}") from None

    def _moments(self, column: Any, finer: bool) -> Iterator[tuple[datetime, int]]:
        """The times, and the nanoseconds below their microseconds if `finer` allows them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        moment_of: Callable[[Any], datetime]
        below: list[int] | None = None
        if pa.types.is_timestamp(column.type):
            whole = column
            if finer and column.type.unit == "ns":
                whole = pc.floor_temporal(column, unit="microsecond")
                below = pc.subtract(column.cast(pa.int64()), whole.cast(pa.int64())).to_pylist()
            # refuses times finer than a microsecond
            column = whole.cast(pa.timestamp("us", column.type.tz))

            def moment_of(value: Any) -> datetime:
                return in_zone(value, str(value), self.zone)
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):

            def moment_of(value: Any) -> datetime:
                return moment_from(value, self.zone)
        else:
            raise ValueError(f"column time is {column.type}, neither timestamps nor texts")
        for place, value in enumerate(column.to_pylist()):
            if value is None:
                raise ValueError("the time is missing")
            if below is not None:
                yield moment_of(value), below[place]
            elif isinstance(value, str) and finer:
                text, nanoseconds = below_microseconds(value)
                yield moment_of(text), nanoseconds
            else:
                yield moment_of(value), 0


def _readings(table: Table, places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    readings: list[Any] = [None] * len(table.columns)
    for place, value in zip(places, values, strict=True):
        try:
            readings[place] = fit(value, table.columns[place])
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {table.columns[place].name}: {error}") from None
    return readings
