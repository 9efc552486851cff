"""Old rows on their way into the archive: the log's columns and types, in the order of its key.

Values are never changed silently: a number, a text or a time that does not fit is an error that names the
column, unless the description of the source says that it is to be rounded.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.forms import ROWS, Rows
from ringlog.history.connection import as_text
from ringlog.schema.relations.partitions import Week

_WEEK = 7 * 86_400_000_000  # microseconds
_MONDAY = 4 * 86_400_000_000  # 1970-01-05
_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}  # nanoseconds


class IncomingError(ValueError):
    """Rows of a source that do not fit the log, or a wrong description."""


class Source(Protocol):
    """Old rows of one table, wherever they are. Its text names it, without a password."""

    form: Rows = ROWS
    """the form of the table's rows"""
    left_out: int = 0
    """rows of the source that are left out"""

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on and before `end` in the order of their times, with the source's own
        columns and types; it may give others too. `wanted` is the log's schema. Raises IncomingError."""
        ...

    def fraction(self) -> float | None:
        """The part of all its rows that has been read, by time or bytes; None: unknown."""
        ...

    def remarks(self) -> Iterator[str]:
        """A line about each kind of data that was left out."""
        yield from ()


def fraction_of(bounds: tuple[datetime, datetime] | None, reached: datetime | None) -> float | None:
    """The part of the time between `bounds` up to `reached`, 0 to 1; None: not known yet."""
    if bounds is None or reached is None or bounds[1] <= bounds[0]:
        return None
    first, last = bounds
    return min(1.0, max(0.0, (reached - first) / (last - first)))


@dataclass(frozen=True)
class Description:
    """How a source's columns become a log's: `[TABLE]` of a TOML file."""

    time: str = "time"
    seq_no: str = "seq_no"
    """The source's column; without it the rows of a week are numbered around the ring"""
    timezone: str = "UTC"
    """of times without a zone; in the repeated hour they mean its first pass"""
    time_format: str = ""
    """of times as texts, by strptime; empty: ISO 8601"""
    unit: str = "s"
    """of times as numbers since 1970: s, ms, us, ns"""
    scale: int = 7
    """digits of a second in a datetime2 of bcp's native files"""
    digits: str = "refuse"
    """of times finer than microseconds: refuse or round"""
    values: str = "exact"
    """exact, or round: doubles that become reals may lose digits"""
    repeated: str = "refuse"
    """of rows with the key of the row before: refuse, or first: keep that one"""
    damaged: str = "refuse"
    """of lines of PB files: refuse or skip"""
    columns: Mapping[str, str] = field(default_factory=dict)
    """the source's columns by the log's, where their names differ"""

    def chosen(self, there: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
        """The source's columns that the log has, as they are written there, by the log's. Case does not
        count."""
        known = {name.lower(): name for name in there}
        named = {column: known.get(self.named(column).lower()) for column in wanted}
        return {column: name for column, name in named.items() if name is not None}

    def named(self, column: str) -> str:
        """The source's name of a column of the log."""
        if column in ROWS.key:
            return str(getattr(self, column))
        return self.columns.get(column, column)


_CHOICES = {
    "digits": ("refuse", "round"),
    "values": ("exact", "round"),
    "repeated": ("refuse", "first"),
    "damaged": ("refuse", "skip"),
    "unit": (*_UNITS,),
}


def description_of(file: Path | None, table: str) -> Description:
    """The description of a table in a file. Raises IncomingError."""
    if file is None:
        return Description()
    try:
        entries = tomllib.loads(file.read_text()).get(table, {})
    except (OSError, ValueError) as error:
        raise IncomingError(f"{file}: {error}") from None
    known = {each.name for each in fields(Description)}
    if unknown := sorted({*entries} - known):
        raise IncomingError(
            f"{file}: [{table}] has {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    for name, choices in _CHOICES.items():
        if entries.get(name, choices[0]) not in choices:
            raise IncomingError(f"{file}: {name} of [{table}] must be one of {', '.join(choices)}")
    if entries.get("scale", 7) not in range(8):
        raise IncomingError(f"{file}: scale of [{table}] must be from 0 to 7")
    described = Description(**entries)
    try:
        ZoneInfo(described.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise IncomingError(f"{file}: there is no time zone {described.timezone!r}") from None
    return described


class Incoming:
    """Turns a source's batches into the log's: see `batches`. Counts the rows that are left out."""

    def __init__(
        self,
        schema: pa.Schema,
        lengths: Mapping[str, int],
        ring_rows: int,
        described: Description,
        decimals: Mapping[str, pa.DataType] = MappingProxyType({}),
    ) -> None:
        """`schema` is the log's, with text for numerics, whose types in files are `decimals`; `lengths` has
        the most characters of its texts; `ring_rows` is the number of rows of the ring."""
        self.schema = schema
        self._lengths = lengths
        self._decimals = decimals
        self._ring_rows = ring_rows
        self._described = described
        self._came = 0
        self._week = -1
        self._number = 0
        """rows of the week so far, where the source has no seq_no"""
        self.without_time = 0
        self.repeated = 0
        self.missing: list[str] = []
        """columns of the log that the source lacks: they are null"""

    def batches(
        self, came: Iterator[pa.RecordBatch], start: datetime | None, end: datetime
    ) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on and before `end`, ordered by time and seq_no, each key once; no two batches
        share a time. Raises IncomingError."""
        pending: pa.RecordBatch | None = None
        for batch in came:
            batch = _between(self._shaped(batch), start, end)
            if not batch.num_rows:
                continue
            if pending is not None:
                first, last = _times(batch)[0], _times(pending)[-1]
                if first < last:
                    raise IncomingError(f"row {self._came} is not in the order of time: {_moment(first)}")
                if first == last:
                    cut = int(_times(pending).searchsorted(last))
                    batch = pa.concat_batches([pending.slice(cut), batch])
                    pending = pending.slice(0, cut)
                if pending.num_rows:
                    yield pending
            pending = self._ordered(batch)
        if pending is not None and pending.num_rows:
            yield pending

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the log's columns and types, without rows that have no time."""
        names = {name.lower(): name for name in batch.schema.names}
        described = self._described
        column = names.get(described.time.lower())
        if column is None:
            raise IncomingError(
                f"the source has no column {described.time!r}: it has {', '.join(names.values())}"
            )
        try:
            time = self._time(batch[column])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise IncomingError(f"column {column}: {error}") from None
        if time.null_count:
            has_time = time.is_valid()
            self.without_time += time.null_count
            batch, time = batch.filter(has_time), time.filter(has_time)
        self._came += batch.num_rows
        missing, columns = [], []
        for target in self.schema:
            column = names.get(described.named(target.name).lower())
            if target.name == "time":
                columns.append(time)
            elif target.name == "seq_no" and column is None:
                columns.append(self._numbered(time))
            elif column is None:
                missing.append(target.name)
                columns.append(pa.nulls(batch.num_rows, target.type))
            else:
                columns.append(self._cast(batch[column], target, column))
        if len(missing) == len(self.schema) - len(ROWS.key):
            raise IncomingError(f"the source has no column of the log: it has {', '.join(names.values())}")
        self.missing = missing
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _time(self, values: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._of_texts(values)
        elif pa.types.is_integer(values.type):
            values = pc.multiply_checked(values.cast(pa.int64()), _UNITS[self._described.unit])
            values = values.cast(pa.timestamp("ns", "UTC"))
        elif pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("us"))
        if not pa.types.is_timestamp(values.type):
            raise IncomingError(f"column {self._described.time} is {values.type}, and no time")
        if values.type.unit == "ns":
            nanoseconds = values.cast(pa.int64())
            whole = nanoseconds.fill_null(0).to_numpy()
            finer = np.flatnonzero(whole % 1000)
            if len(finer) and self._described.digits == "refuse":
                raise IncomingError(
                    f"{values[int(finer[0])]} has more than six digits of a second:"
                    ' digits = "round" in the description rounds them'
                )
            rounded = pa.array(
                (whole + 500) // 1000, mask=nanoseconds.is_null().to_numpy(zero_copy_only=False)
            )
            values = rounded.cast(pa.timestamp("us", values.type.tz))
        values = values.cast(pa.timestamp("us", values.type.tz))
        if values.type.tz is None:
            values = pc.assume_timezone(values, self._described.timezone, ambiguous="earliest")
        return values.cast(pa.timestamp("us", "UTC"))

    def _of_texts(self, values: pa.Array) -> pa.Array:
        if self._described.time_format:
            return pc.strptime(values, format=self._described.time_format, unit="us", error_is_null=False)
        first = next((text.as_py() for text in values if text.is_valid), "")
        zoned = first.endswith("Z") or "+" in first[10:] or "-" in first[10:]
        return values.cast(pa.timestamp("ns", "UTC" if zoned else None))

    def _numbered(self, time: pa.Array) -> pa.Array:
        weeks = (time.cast(pa.int64()).to_numpy() - _MONDAY) // _WEEK
        numbers = np.empty(len(weeks), np.int32)
        begin = 0
        while begin < len(weeks):
            stop = int(weeks.searchsorted(weeks[begin], side="right"))
            if weeks[begin] != self._week:
                self._week, self._number = int(weeks[begin]), 0
            count = max(1, stop - begin)
            numbers[begin : begin + count] = (self._number + np.arange(count)) % self._ring_rows + 1
            self._number += count
            begin += count
        return pa.array(numbers)

    def _cast(self, values: pa.Array, target: pa.Field, column: str) -> pa.Array:
        converted = cast(values, target, column, self._described)
        if (decimal := self._decimals.get(target.name)) is not None:
            converted = as_text(cast(converted, target.with_type(decimal), column, self._described))
        if target.name == "seq_no" and converted.null_count:
            raise IncomingError(f"column {column} has nulls: every row needs a seq_no")
        longest = self._lengths.get(target.name)
        if longest is not None and (pc.max(pc.utf8_length(converted)).as_py() or 0) > longest:
            raise IncomingError(f"column {column} has a text of more than {longest} characters")
        return converted

    def _ordered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch ordered by its key, each once."""
        time, seq_no = (batch[name].cast(pa.int64()).to_numpy() for name in ROWS.key)
        step = np.diff(time)
        if (step < 0).any():
            at = int(np.flatnonzero(step < 0)[0])
            raise IncomingError(
                f"rows are not in the order of time: {_moment(time[at + 1])} comes after {_moment(time[at])}"
            )
        same = np.flatnonzero(step == 0)
        if not len(same):
            return batch
        if (np.diff(seq_no)[same] < 0).any():
            batch = batch.take(np.lexsort((seq_no, time)))
            time, seq_no = (batch[name].cast(pa.int64()).to_numpy() for name in ROWS.key)
        again = np.zeros(len(time), bool)
        again[1:] = (np.diff(time) == 0) & (np.diff(seq_no) == 0)
        if again.any():
            if self._described.repeated == "refuse":
                at = int(np.flatnonzero(again)[0])
                raise IncomingError(
                    f"two rows have the time {_moment(time[at])} and the seq_no {seq_no[at]}:"
                    ' repeated = "first" in the description keeps the first'
                )
            self.repeated += int(again.sum())
            batch = batch.filter(pa.array(~again))
        return batch


def cast(values: pa.Array, target: pa.Field, column: str, described: Description) -> pa.Array:
    """Values of the source's `column` in the type of a column. Raises IncomingError for one that does
    not fit."""
    try:
        if values.type == target.type:
            return values
        if pa.types.is_float64(values.type) and pa.types.is_float32(target.type):
            converted = values.cast(target.type)
            if described.values == "exact" and not files.bits(converted.cast(pa.float64())).equals(
                files.bits(values)
            ):
                raise IncomingError(
                    f"column {column} has doubles, of which {target.name} would lose digits:"
                    ' values = "round" in the description rounds them'
                )
            return converted
        is_bit = pa.types.is_boolean(target.type) and pa.types.is_integer(values.type)
        if is_bit and not pc.all(pc.is_in(values.drop_null(), pa.array([0, 1], values.type))).as_py():
            raise IncomingError(f"column {column} has other numbers than 0 and 1, and {target.name} is a bit")
        return values.cast(target.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise IncomingError(
            f"column {column} is {values.type} and {target.name} {target.type}: {error}"
        ) from None


def by_week(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Week, Iterator[pa.RecordBatch]]]:
    """The rows or samples of each week, which are to be read before the next week is. A batch of samples is
    of one week."""

    def parts() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in batches:
            weeks = (_times(batch) - _MONDAY) // _WEEK
            begin = 0
            while begin < len(weeks):
                stop = int(weeks.searchsorted(weeks[begin], side="right"))
                yield int(weeks[begin]), batch.slice(begin, stop - begin)
                begin = stop

    for number, group in groupby(parts(), key=lambda part: part[0]):
        yield Week.of(_moment(number * _WEEK + _MONDAY)), (batch for _, batch in group)


class IncomingSamples:
    """The form of samples in the archive, in which their source already gives them: see Incoming."""

    missing: tuple[str, ...] = ()
    without_time = repeated = 0

    def __init__(self, kind: pa.DataType) -> None:
        alarms = [(name, pa.int16()) for name in ("severity", "status")]
        time = pa.timestamp("us", "UTC")
        self.schema = pa.schema(
            [("number", pa.int32()), ("time", time), ("nanoseconds", pa.int16()), ("value", kind), *alarms]
        )

    def batches(
        self, came: Iterator[pa.RecordBatch], start: datetime | None, end: datetime
    ) -> Iterator[pa.RecordBatch]:
        return came


class Checksum:
    """A checksum of rows in their order, independent of their division into batches."""

    def __init__(self) -> None:
        self.rows = 0
        self._columns: list[_Sums] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if not self._columns:
            self._columns = [_Sums() for _ in batch.schema]
        for column, sums in zip(batch.columns, self._columns, strict=True):
            sums.add(column, self.rows)
        self.rows += batch.num_rows

    def text(self) -> str:
        whole = b"".join(column.digest() for column in self._columns)
        return f"{self.rows}:{hashlib.blake2b(whole, digest_size=16).hexdigest()}"


class _Sums:
    """The sums of a column: of its nulls' positions, of the lengths of texts and lists, of all values."""

    def __init__(self) -> None:
        self._nulls, self._lengths, self._values = (hashlib.blake2b(digest_size=16) for _ in range(3))
        self._points: _Sums | None = None
        self._count = 0
        """points so far"""

    def add(self, column: pa.Array, before: int) -> None:
        if column.null_count:
            nulls = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)) + before
            self._nulls.update(nulls.tobytes())
            column = column.drop_null()
        if pa.types.is_list(column.type):
            self._lengths.update(pc.list_value_length(column).to_numpy())
            self._points = self._points or _Sums()
            points = pc.list_flatten(column)
            self._points.add(points, self._count)
            self._count += len(points)
            return
        if pa.types.is_string(column.type):
            self._lengths.update(pc.binary_length(column).to_numpy())
            self._values.update(b"".join(text.as_buffer() for text in column))
            return
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        self._values.update(np.ascontiguousarray(column.to_numpy()).data)

    def digest(self) -> bytes:
        points = self._points.digest() if self._points else b""
        return self._nulls.digest() + self._lengths.digest() + self._values.digest() + points


def _between(batch: pa.RecordBatch, start: datetime | None, end: datetime) -> pa.RecordBatch:
    times = _times(batch)
    if not len(times) or ((start is None or times[0] >= _number(start)) and times[-1] < _number(end)):
        return batch
    within = times < _number(end)
    if start is not None:
        within &= times >= _number(start)
    return batch.filter(pa.array(within))


def _times(batch: pa.RecordBatch) -> np.ndarray:
    times: np.ndarray = batch["time"].cast(pa.int64()).to_numpy()
    return times


def _number(moment: datetime) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).value)


def _moment(microseconds: int) -> datetime:
    found: datetime = pa.scalar(int(microseconds), pa.timestamp("us", "UTC")).as_py()
    return found
