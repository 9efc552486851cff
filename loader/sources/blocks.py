"""Reads recordings as Arrow blocks of rows, for imports, by the rules of a replay.

Arrow converts a column as a whole if it can do so without loss. Other columns are converted value by value as
in a replay, which names a wrong value. A column `seq_no` is optional.
"""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow.parquet import ParquetFile

from ringlog.loader.sources import SourceError
from ringlog.loader.sources.csv_replay import cell_reader
from ringlog.loader.sources.replay import below_microseconds, in_zone, index_of, moment_from
from ringlog.loader.sources.values import LARGEST_REAL, fit
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Column, Table

VALUES = 1_000_000
"""in a block for an import"""
_CSV_BYTES = 8 << 20
_MICROSECONDS = pa.timestamp("us", "UTC")
_SEQ_NO = Column("seq_no", "", ColumnType(Kind.INT))

_BITS = {"0": False, "1": True, "false": False, "true": True, "False": False, "True": True}


class File:
    """A recording of a table, CSV or Parquet by its suffix. Raises SourceError, which names file and row."""

    def __init__(self, path: Path, table: Table, zone: ZoneInfo, values: int = VALUES) -> None:
        """`values`: approximate number of values in a block."""
        self.path = path
        self.size = path.stat().st_size
        self.done = 0
        """bytes read so far, of `size`"""
        self._table = table
        self._zone = zone
        self._values = values
        self._is_csv = path.suffix == ".csv"
        self._row = 0
        with self._errors_converted():
            names = self._names()
            if "time" not in names:
                raise ValueError("there is no column 'time'")
            self.numbered = "seq_no" in names
            """whether it has a column seq_no"""
            self._columns = [self._column(name) for name in names]
            named = [column.name for column in self._columns if column is not None]
            self._names_read = {*named}
            if len(named) != len(self._names_read):
                raise ValueError("a column is named twice")

    def blocks(self, after: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows after so many of the file: seq_no if the file has it, time, and the file's columns of the
        table, with the names and types of the table."""
        with self._errors_converted():
            previous: Any = None
            for batch in self._of_csv() if self._is_csv else self._of_parquet():
                block = self._converted(batch)
                times = block["time"].cast(pa.int64())
                self._check_order(times, previous)
                if len(times):
                    previous = times[-1]
                behind = self._row + len(times)
                if behind > after:
                    yield block.slice(max(0, after - self._row))
                self._row = behind

    def _names(self) -> list[str]:
        if not self._is_csv:
            with ParquetFile(self.path) as recording:
                return list(recording.schema_arrow.names)
        with self.path.open(encoding="utf-8-sig", newline="") as text:
            return next(csv.reader(text, strict=True), [])

    def _column(self, name: str) -> Column | None:
        if name == "time":
            return None
        return _SEQ_NO if name == "seq_no" else self._table.columns[index_of(self._table, name)]

    def _of_csv(self) -> Iterator[pa.RecordBatch]:
        names = self._names()
        texts = any(column is not None and column.is_text for column in self._columns)
        with (
            pa.OSFile(str(self.path)) as stream,
            arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(block_size=_CSV_BYTES),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=texts, ignore_empty_lines=False),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
                ),
            ) as reader,
        ):
            for batch in reader:
                self.done = stream.tell()
                rows = max(1, self._values // len(names))
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def _of_parquet(self) -> Iterator[pa.RecordBatch]:
        with ParquetFile(self.path) as recording:
            rows = max(1, self._values // len(self._columns))
            total = max(1, recording.metadata.num_rows)
            for batch in recording.iter_batches(rows, use_threads=False):
                self.done = self.size * (self._row + batch.num_rows) // total
                yield batch

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        below = self._table.nanoseconds
        finer = below is not None and self._table.columns[below].name not in self._names_read
        arrays: dict[str, pa.Array] = {}
        for column, values in zip(self._columns, batch.columns, strict=True):
            if column is None:
                arrays["time"], nanoseconds = self._times(values, finer)
                if below is not None and finer:
                    name = self._table.columns[below].name
                    arrays[name] = pa.array(nanoseconds, pa.int16()).cast(
                        self._table.columns[below].type.arrow
                    )
            else:
                arrays[column.name] = self._readings(values, column)
        return pa.RecordBatch.from_pydict(arrays)

    def _times(self, values: pa.Array, finer: bool) -> tuple[pa.Array, list[int]]:
        """The times, and the nanoseconds below their microseconds if `finer` separates them."""
        if values.null_count:
            raise self._wrong(values.is_null().index(True).as_py(), "the time is missing")
        if finer:
            return self._finer_times(values)
        if pa.types.is_timestamp(values.type):
            lost = pc.not_equal(values, pc.floor_temporal(values, unit="microsecond")).index(True).as_py()
            if lost >= 0:
                raise self._wrong(lost, f"time {values[lost]} is finer than a microsecond")
            return self._whole(values, lambda value: in_zone(value, str(value), self._zone)), []
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            raise ValueError(f"column time is {values.type}, neither timestamps nor texts")
        return self._whole(values, lambda text: moment_from(text, self._zone)), []

    def _whole(self, values: pa.Array, one: Callable[[Any], datetime]) -> pa.Array:
        for zone in ("UTC", None):
            try:
                if pa.types.is_timestamp(values.type):
                    times = values.cast(pa.timestamp("us", values.type.tz))
                else:
                    times = values.cast(pa.timestamp("us", zone))
                if times.type.tz is None:
                    # a repeated or missing local time is an error here too
                    times = pc.assume_timezone(times, self._zone.key)
                return times.cast(_MICROSECONDS)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
        return self._one_by_one(values, one, _MICROSECONDS)

    def _finer_times(self, values: pa.Array) -> tuple[pa.Array, list[int]]:
        if pa.types.is_timestamp(values.type):
            whole = pc.floor_temporal(values, unit="microsecond")
            nanoseconds = pc.subtract(
                values.cast(pa.timestamp("ns", values.type.tz)).cast(pa.int64()),
                whole.cast(pa.timestamp("ns", values.type.tz)).cast(pa.int64()),
            )
            return self._times(whole, finer=False)[0], nanoseconds.to_pylist()
        parts = [below_microseconds(text) for text in values.to_pylist()]
        return self._times(pa.array([text for text, _ in parts]), finer=False)[0], [rest for _, rest in parts]

    def _readings(self, values: pa.Array, column: Column) -> pa.Array:
        try:
            converted = _of_texts(values, column) if self._is_csv else _of_values(values, column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            converted = None
        if converted is not None:
            return converted
        return self._one_by_one(values, self._reader(column), column.type.arrow, column)

    def _reader(self, column: Column) -> Callable[[Any], Any]:
        """A function that converts a single value, as Arrow needs it."""
        read: Callable[[Any], Any] = (
            cell_reader(column, self._zone) if self._is_csv else partial(fit, column=column)
        )
        if column.is_waveform:
            # checked as a reading, and sent as it is
            return lambda value: (read(value), value)[1]
        if column.type.kind is Kind.DATETIME:
            return lambda value: datetime.fromisoformat(str(read(value)))
        if column.type.kind is Kind.NUMERIC:
            return lambda value: Decimal(str(read(value)))
        return read

    def _one_by_one(
        self, values: pa.Array, one: Callable[[Any], Any], kind: pa.DataType, column: Column | None = None
    ) -> pa.Array:
        converted = []
        for index, value in enumerate(values.to_pylist()):
            try:
                converted.append(None if value is None else one(value))
            except (ValueError, TypeError, OverflowError) as error:
                raise self._wrong(index, f"column {column.name}: {error}" if column else str(error)) from None
        return pa.array(converted, kind)

    def _check_order(self, times: pa.Array, previous: Any) -> None:
        """Without a column seq_no rows are identified by their times, which must differ."""
        if previous is not None:
            times = pa.concat_arrays([pa.array([previous], pa.int64()), times])
        earlier = (pc.less if self.numbered else pc.less_equal)(times[1:], times[:-1])
        if pc.any(earlier).as_py():
            index = earlier.index(True).as_py() + (previous is None)
            raise self._wrong(index, "its time is not later than that of the row before")

    def _wrong(self, index: int, message: str) -> SourceError:
        return SourceError(f"{self.path}, row {self._row + index + 1}: {message}")

    @contextmanager
    def _errors_converted(self) -> Iterator[None]:
        """Raises SourceError for the errors of reading."""
        try:
            yield
        except (ValueError, TypeError, OverflowError, csv.Error, pa.ArrowException) as error:
            where = f"{self.path}, after row {self._row}" if self._row else f"{self.path}"
            raise SourceError(f"{where}: {error}") from None
        except OSError as error:
            raise SourceError(f"{self.path}: {error.strerror or error}") from None


def _of_texts(values: pa.Array, column: Column) -> pa.Array | None:
    """A column of CSV as a whole; None, or an Arrow error, if each cell must be examined."""
    kind = column.type.arrow
    if column.type.is_float:
        return _rounded(values.cast(pa.float64()), column, finite=True)
    if column.type.is_integer:
        # Arrow would read 0x1F
        return (
            None if pc.any(pc.match_substring(values, "x", ignore_case=True)).as_py() else values.cast(kind)
        )
    if column.type.kind is Kind.BIT:
        indexes = pc.index_in(values, pa.array([*_BITS]))
        return pa.array([*_BITS.values()]).take(indexes) if indexes.null_count == values.null_count else None
    return values if column.is_text and _fit_text(values, column) else None


def _of_values(values: pa.Array, column: Column) -> pa.Array | None:
    """The same of Parquet."""
    kind = column.type.arrow
    of_numbers = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if column.type.is_float and of_numbers:
        return _rounded(values.cast(pa.float64()), column, finite=False) if values.type != kind else values
    if column.type.is_integer and of_numbers:
        return values.cast(kind)
    if column.type.kind is Kind.BIT and pa.types.is_boolean(values.type):
        return values
    if column.is_text and not column.is_waveform and pa.types.is_string(values.type):
        return values if _fit_text(values, column) else None
    return None


def _rounded(values: pa.Array, column: Column, *, finite: bool) -> pa.Array | None:
    """Doubles of the column; None if one is too large, or is not finite and `finite` is set."""
    numbers = pc.is_finite(values)
    if finite and not pc.all(numbers).as_py() and pc.any(pc.invert(numbers)).as_py():
        return None
    if column.type.kind is Kind.DOUBLE:
        return values
    if pc.any(pc.and_(numbers, pc.greater(pc.abs(values), LARGEST_REAL))).as_py():
        return None
    return values.cast(pa.float32(), safe=False)


def _fit_text(values: pa.Array, column: Column) -> bool:
    if pc.any(pc.match_substring(values, "\0")).as_py():
        return False
    length = column.type.length
    return length is None or (pc.max(pc.utf8_length(values)).as_py() or 0) <= length
