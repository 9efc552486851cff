"""Data files of bcp, of SQL Server and ASE, native and character, with their format files.

A row has its fields one after another, as the format file says: a length in a prefix of 0, 1, 2 or 4 bytes,
then the value, then a terminator; without both the value has a fixed length. A length of -1 is null; of a
value of fixed size, and of ASE, so is 0 (SQL Server, "Non-XML format files", "Specify prefix length in data
files by using bcp"; ASE, Utility Guide, bcp, "Format files").

Native rows of numbers and times have one length except for their nulls: they are read by numpy, many rows and
columns at once; Python fills in the rows that have nulls. Rows with texts are taken apart by Python, field by
field.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from ringlog.history.incoming import Description, IncomingError
from ringlog.history.sources.folders import files_in

_BLOCK = 8 << 20  # bytes
_DAY = 86_400_000_000  # microseconds
_TO_1900 = 25_567  # days before 1970
_TO_0001 = 719_162
_TICKS = 300 * 86_400  # of a day
_LEAST, _MOST = 64, 8192
"""rows that are looked at together"""
_CHUNK = 256
_NO_VALUE = 0xFF
_DTYPES = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}
_NULL = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF}

# host types of format files, with numpy's type of their values
_NUMBERS = {
    "FLT4": "<f4",
    "REAL": "<f4",
    "FLT8": "<f8",
    "FLOAT": "<f8",
    "TINYINT": "u1",
    "INT1": "u1",
    "SMALLINT": "<i2",
    "INT2": "<i2",
    "INT": "<i4",
    "INT4": "<i4",
    "BIGINT": "<i8",
    "INT8": "<i8",
    "BIT": "u1",
}
_TEXTS = ("CHAR", "VARCHAR", "NCHAR", "NVARCHAR", "BINARY", "VARBINARY")
_TIMES = ("DATETIME", "DATETIM4", "DATETIME4", "DATETIME2")
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}


@dataclass(frozen=True)
class Field:
    """A field of each row of a data file."""

    name: str
    """of the column; empty: the field is skipped"""
    type: str
    """the host type without SQL or SYB, as FLT4"""
    prefix: int
    """bytes of its length"""
    length: int
    """bytes where it has no prefix and no terminator; the scale's digits are not part of it"""
    terminator: bytes
    is_sybase: bool

    @property
    def width(self) -> int | None:
        """Bytes of a value that is there; None: variable."""
        if self.type in _NUMBERS:
            return np.dtype(_NUMBERS[self.type]).itemsize
        return {"DATETIM4": 4, "DATETIME4": 4, "DATETIME": 8}.get(self.type)


def fields_of(file: Path) -> list[Field]:
    """The fields of a format file that is not XML. Raises IncomingError."""
    lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    try:
        count = int(lines[1])
        found = [_field(line) for line in lines[2 : 2 + count]]
    except (IndexError, ValueError) as error:
        raise IncomingError(f"{file} is no format file of bcp (XML is not read): {error}") from None
    if len(found) != count:
        raise IncomingError(f"{file} has {len(found)} fields, not {count}")
    return found


def _field(line: str) -> Field:
    parts = re.findall(r'"[^"]*"|\S+', line)
    _, host, prefix, length, terminator, place, name = parts[:7]
    for escape, character in _ESCAPES.items():
        terminator = terminator.replace(escape, character)
    kind = host.removeprefix("SQL").removeprefix("SYB")
    if kind not in (*_NUMBERS, *_TEXTS, *_TIMES):
        raise ValueError(f"the type {host} is not read")
    return Field(
        "" if place == "0" else name.strip('"'),
        kind,
        int(prefix),
        int(length),
        terminator.strip('"').encode(),
        host.startswith("SYB"),
    )


class BcpFiles:
    """A data file, or the data files (*.bcp, *.dat, *.txt) of a folder in the order of their names. The
    format file is FILE.fmt beside each, or the folder's only one."""

    def __init__(self, place: Path, described: Description, charset: str = "utf-8") -> None:
        self._place = place.absolute()
        self._described = described
        self._charset = charset
        self._all = self._done = 0

    def __str__(self) -> str:
        return f"bcp:{self._place}"

    def fraction(self) -> float | None:
        return min(1.0, self._done / self._all) if self._all else None

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. All rows are read, also those before `start`."""
        found = files_in(self._place, "bcp", "dat", "txt")
        self._all, self._done = sum(file.stat().st_size for file in found), 0
        for file in found:
            fields = fields_of(self._format_of(file))
            chosen = self._described.chosen((field.name for field in fields), wanted.names)
            if "time" not in chosen:
                raise IncomingError(f"{file} has no column {self._described.time!r}")
            try:
                if all(field.type == "CHAR" and field.prefix == 0 and field.terminator for field in fields):
                    yield from self._of_characters(file, fields, wanted, chosen)
                else:
                    with file.open("rb") as stream:
                        yield from self._native(file, stream, fields, {*chosen.values()})
            except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
                raise IncomingError(f"{file}: {error}") from None

    def _format_of(self, file: Path) -> Path:
        beside = file.with_suffix(".fmt")
        if beside.exists():
            return beside
        folder = self._place if self._place.is_dir() else self._place.parent
        formats = sorted(folder.glob("*.fmt"))
        if len(formats) != 1:
            raise IncomingError(f"{file} has no format file {beside.name}, and {folder} not a single one")
        return formats[0]

    def _of_characters(
        self, file: Path, fields: Sequence[Field], wanted: pa.Schema, chosen: dict[str, str]
    ) -> Iterator[pa.RecordBatch]:
        """A character file: a line each row, its fields divided by one character."""
        between, end = {field.terminator for field in fields[:-1]}, fields[-1].terminator
        if len(between) > 1 or any(len(each) != 1 for each in between) or end not in (b"\n", b"\r\n"):
            raise IncomingError(f"{file}: fields end with one character each, rows with \\n or \\r\\n")
        names = [field.name or f"skipped {number}" for number, field in enumerate(fields)]
        types = {name: wanted.field(column).type for column, name in chosen.items()}
        types[chosen["time"]] = pa.timestamp("ns") if not self._described.time_format else pa.timestamp("us")
        reader = csv.open_csv(
            file,
            csv.ReadOptions(block_size=_BLOCK, column_names=names, encoding=self._charset),
            csv.ParseOptions(
                delimiter=(between.pop() if between else b"\t").decode(), quote_char=False, double_quote=False
            ),
            csv.ConvertOptions(
                column_types=types,
                include_columns=[*chosen.values()],
                null_values=[""],
                strings_can_be_null=True,
                true_values=["1"],
                false_values=["0"],
                timestamp_parsers=[self._described.time_format] if self._described.time_format else None,
            ),
        )
        size = file.stat().st_size
        begun = self._done
        with reader:
            for batch in reader:
                self._done = min(begun + size, self._done + batch.nbytes)
                yield batch
        self._done = begun + size

    def _native(
        self, file: Path, stream: BinaryIO, fields: Sequence[Field], wanted: set[str]
    ) -> Iterator[pa.RecordBatch]:
        fixed = _Fixed.of(fields, wanted)
        rows = fixed or _Rows(fields, wanted, self._charset, self._described.scale)
        left = b""
        while data := stream.read(_BLOCK):
            left += data
            batch, used = rows.decoded(left)
            left = left[used:]
            self._done += used
            if batch is not None:
                yield batch
        if left:
            raise IncomingError(f"{file} ends in the middle of a row, {len(left)} bytes after its begin")


@dataclass(frozen=True)
class _Run:
    """Successive fields of one form."""

    fields: list[Field]
    begin: int
    """bytes from the begin of a row without nulls"""
    step: int
    """bytes of each"""


class _Fixed:
    """Decodes native rows of numbers and times: without nulls all are equally long."""

    def __init__(self, fields: Sequence[Field], wanted: set[str]) -> None:
        self._wanted = wanted
        self._steps: list[tuple[int, int, int, int, str]] = []
        """of each field: bytes of its prefix, its null, bytes of its value, and of all"""
        self._runs: list[_Run] = []
        at = 0
        heads = []
        for field in fields:
            width = field.width or 0
            step = field.prefix + width + len(field.terminator)
            last = self._runs[-1] if self._runs else None
            if last and (last.fields[0].type, last.fields[0].prefix, last.step) == (
                field.type,
                field.prefix,
                step,
            ):
                last.fields.append(field)
            else:
                self._runs.append(_Run([field], at, step))
            self._steps.append((field.prefix, _NULL.get(field.prefix, -1), width, step, field.name))
            heads += [(at + place, width if not place else 0) for place in range(field.prefix)]
            at += step
        self._length = at
        self._heads = np.array([place for place, _ in heads], np.int64)
        self._widths = np.array([width for _, width in heads], np.uint8)

    @classmethod
    def of(cls, fields: Sequence[Field], wanted: set[str]) -> "_Fixed | None":
        if any(field.width is None or (field.terminator and not field.prefix) for field in fields):
            return None
        return cls(fields, wanted)

    def decoded(self, data: bytes) -> tuple[pa.RecordBatch | None, int]:
        """The whole rows at the begin of the data, and their bytes."""
        parts: list[np.ndarray] = []
        length, place, ahead = self._length, 0, _LEAST
        octets = np.frombuffer(data, np.uint8)
        while True:
            count = min(ahead, (len(data) - place) // length)
            rows = octets[place : place + count * length].reshape(count, length)
            whole = (rows[:, self._heads] == self._widths).all(axis=1)
            good = count if whole.all() else int(whole.argmin())
            if good:
                parts.append(rows[:good])
                place += good * length
            if good == count and count == ahead:
                ahead = min(2 * ahead, _MOST)
                continue
            filled = self._filled(data, place)
            if filled is None:
                break
            row, place = filled
            parts.append(row)
            ahead = max(_LEAST, ahead // 2)
        if not parts:
            return None, 0
        return self._batch(parts), place

    def _filled(self, data: bytes, place: int) -> tuple[np.ndarray, int] | None:
        """A row as if it had no nulls, with the prefix of a null where one is, and where the next one begins;
        None if it is not whole."""
        made = bytearray(self._length)
        size, begin, to, at = len(data), place, 0, 0
        for prefix, null, width, step, name in self._steps:
            if prefix:
                if place + prefix > size:
                    return None
                head = data[place : place + prefix]
                length = head[0] if prefix == 1 else int.from_bytes(head, "little")
                if length != width:
                    if length not in (null, 0):
                        raise IncomingError(
                            f"{name or 'a field'} has a length of {length} bytes, not {width}: the format"
                            " file is another one"
                        )
                    made[to:at] = data[begin:place]
                    made[at] = _NO_VALUE
                    place += step - width
                    begin = place
                    at += step
                    to = at
                    continue
            place += step
            at += step
        if place > size:
            return None
        made[to:at] = data[begin:place]
        return np.frombuffer(made, np.uint8).reshape(1, -1), place

    def _batch(self, parts: list[np.ndarray]) -> pa.RecordBatch:
        count = sum(len(part) for part in parts)
        rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
        columns, names = [], []
        for run in self._runs:
            if not any(field.name in self._wanted for field in run.fields):
                continue
            first, many = run.fields[0], len(run.fields)
            width = first.width or 0
            values = np.empty((many, width // _unit(first), count), _DTYPES[_unit(first)])
            there = np.ones((many, count), bool)
            # a part that the processor's cache holds
            for begin in range(0, count, _CHUNK):
                part = rows[begin : begin + _CHUNK, run.begin : run.begin + many * run.step]
                fields = np.ascontiguousarray(part).reshape(len(part), many, run.step)
                if first.prefix:
                    there[:, begin : begin + _CHUNK] = (fields[:, :, 0] == width).T
                found = np.ascontiguousarray(fields[:, :, first.prefix : first.prefix + width])
                values[:, :, begin : begin + _CHUNK] = found.view(_DTYPES[_unit(first)]).transpose(1, 2, 0)
            for field, of_field, valid in zip(run.fields, values, there, strict=True):
                if field.name in self._wanted:
                    names.append(field.name)
                    columns.append(_array(field, of_field, None if valid.all() else ~valid))
        return pa.RecordBatch.from_arrays(columns, names)


def _unit(field: Field) -> int:
    """Bytes of the numbers that a value consists of."""
    if field.type in ("DATETIM4", "DATETIME4"):
        return 2
    return 4 if field.type == "DATETIME" else field.width or 1


def _array(field: Field, parts: np.ndarray, nulls: np.ndarray | None) -> pa.Array:
    """A column of the numbers that its values consist of, (parts, rows)."""
    if field.type in ("DATETIM4", "DATETIME4"):
        days, minutes = parts.astype(np.int64)
        return _moments((days - _TO_1900) * _DAY + minutes * 60_000_000, nulls, "us")
    if field.type == "DATETIME":
        days, ticks = parts.view(np.int32).astype(np.int64)
        if nulls is not None:
            ticks[nulls] = 0
        if ((ticks < 0) | (ticks >= _TICKS)).any():
            raise IncomingError(f"{field.name} has a time outside the day: the format file is another one")
        # in milliseconds, as the old servers show them: 1/300 s are .003, .007 and .010
        return _moments((days - _TO_1900) * _DAY + (ticks * 10 + 1) // 3 * 1000, nulls, "us")
    made = parts[0].view(_NUMBERS[field.type])
    if field.type == "BIT":
        made = made != 0
    elif made.dtype == np.uint8:
        made = made.astype(np.int16)
    return pa.array(made, mask=nulls)


class _Rows:
    """Decodes rows of a native file."""

    def __init__(self, fields: Sequence[Field], wanted: set[str], charset: str, scale: int) -> None:
        """`scale`: of datetime2."""
        self._scale = scale
        self._fields = fields
        self._wanted = wanted
        self._charset = charset

    def decoded(self, data: bytes) -> tuple[pa.RecordBatch | None, int]:
        """The whole rows at the begin of the data, and their bytes."""
        octets = np.frombuffer(data, np.uint8)
        places, lengths, used = self._of_any_length(data)
        if not len(places[0]):
            return None, 0
        columns, names = [], []
        for field, place, length in zip(self._fields, places, lengths, strict=True):
            if field.name in self._wanted:
                names.append(field.name)
                columns.append(self._column(field, octets, place, length))
        return pa.RecordBatch.from_arrays(columns, names), used

    def _of_any_length(self, data: bytes) -> "_Found":
        found: list[tuple[int, int]] = []
        used = place = rows = 0
        size = len(data)
        steps = [
            (field.prefix, _NULL.get(field.prefix, -1), field.length, field.terminator, field.width, field)
            for field in self._fields
        ]
        while place < size:
            for prefix, null, fixed, terminator, width, field in steps:
                if prefix:
                    if place + prefix > size:
                        break
                    length = int.from_bytes(data[place : place + prefix], "little")
                    place += prefix
                    if length == null:
                        length = -1
                    elif width is not None and length not in (0, width):
                        raise IncomingError(
                            f"{field.name or 'a field'} has a length of {length} bytes, not {width}: the"
                            " format file is another one"
                        )
                    elif length == 0 and (width is not None or field.is_sybase):
                        length = -1
                elif terminator:
                    end = data.find(terminator, place)
                    if end < 0:
                        break
                    length = end - place or -1
                else:
                    length = fixed
                found.append((place, length))
                place += (length if length > 0 else 0) + len(terminator)
                if place > size:
                    break
            else:
                used = place
                rows += 1
                continue
            break
        whole = np.array(found[: rows * len(steps)], np.int64).reshape(rows, len(steps), 2)
        return [*whole[:, :, 0].T], [*whole[:, :, 1].T], used

    def _column(self, field: Field, octets: np.ndarray, place: np.ndarray, length: np.ndarray) -> pa.Array:
        there = length >= 0
        nulls = None if there.all() else ~there
        if field.width is not None:
            unit = _unit(field)
            parts = [_numbers(octets, place + at, there, _DTYPES[unit]) for at in range(0, field.width, unit)]
            return _array(field, np.array(parts), nulls)
        if field.type == "DATETIME2":
            return self._datetime2(octets, place, length, nulls)
        values = [
            octets[begin : begin + size].tobytes() if size >= 0 else None
            for begin, size in zip(place.tolist(), length.tolist(), strict=True)
        ]
        charset = "utf-16-le" if field.type in ("NCHAR", "NVARCHAR") else self._charset
        return pa.array([None if value is None else value.decode(charset) for value in values], pa.string())

    def _datetime2(
        self, octets: np.ndarray, place: np.ndarray, length: np.ndarray, nulls: np.ndarray | None
    ) -> pa.Array:
        """10^-scale s of the day in 3 to 5 bytes, days since the year 1 in 3. The format file does not have
        the scale: it is described."""
        there = length >= 0
        bytes_of_time = 3 if self._scale <= 2 else 4 if self._scale <= 4 else 5
        size = bytes_of_time + 3
        if (length[there] != size).any():
            raise IncomingError(
                f"a datetime2 has another length than {size} bytes, those of datetime2({self._scale}): write"
                " its scale into the description"
            )
        parts = [_numbers(octets, place + at, there, "u1").astype(np.int64) for at in range(size)]
        units = np.sum([part << 8 * at for at, part in enumerate(parts[:bytes_of_time])], axis=0)
        days = np.sum([part << 8 * at for at, part in enumerate(parts[bytes_of_time:])], axis=0) - _TO_0001
        return _moments(days * _DAY * 1000 + units * 10 ** (9 - self._scale), nulls, "ns")


_Found = tuple[list[np.ndarray], list[np.ndarray], int]
"""Of each field the places and the lengths of its values, -1: null; and the bytes of all rows."""


def _numbers(octets: np.ndarray, place: np.ndarray, there: np.ndarray, kind: str) -> np.ndarray:
    """Numbers at these places of the bytes; 0 where there is none."""
    dtype = np.dtype(kind)
    made = np.zeros(len(place), dtype)
    if there.any():
        wide = np.lib.stride_tricks.sliding_window_view(octets, dtype.itemsize)
        made[there] = wide[place[there]].copy().view(dtype).reshape(-1)
    return made


def _moments(values: np.ndarray, nulls: np.ndarray | None, unit: str) -> pa.Array:
    return pa.array(values, pa.int64(), mask=nulls).cast(pa.timestamp(unit))
