"""Replay of recordings: one CSV file per table, <table>.csv.

The first line names the columns: `time`, then columns of the table by their name or signal name. Columns the
file does not name, and empty cells, are no reading. Times are ISO 8601, later from line to line; without an
offset they are of the facility's time zone.
"""

import csv
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

from ringlog.loader.schedule import SECOND, now
from ringlog.loader.sources import Note, Reading, Row, SourceError, Wait
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Facility, Table

_INTEGER_BITS = {"smallint": 16, "int": 32, "bigint": 64}
_BITS = {"0": False, "1": True, "false": False, "true": True}
_LARGEST_REAL = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


@dataclass(frozen=True)
class CsvReplay:
    """The files of a folder, at `speed` times their own pace; math.inf is as fast as rows are taken."""

    folder: Path
    zone: ZoneInfo
    speed: float = 1.0
    recorded: ClassVar[bool] = True

    @property
    def unhindered(self) -> bool:
        return math.isinf(self.speed)

    def tables(self, facility: Facility) -> list[Table]:
        """The tables that have a file. Raises SourceError for a file that no table is named for."""
        if not self.folder.is_dir():
            raise SourceError(f"{self.folder} is not a folder of CSV files")
        tables = {table.name: table for table in facility.tables}
        files = sorted(self.folder.glob("*.csv"))
        if not files:
            raise SourceError(f"{self.folder} has no CSV file: one is needed for each table, <table>.csv")
        for file in files:
            if file.stem not in tables:
                raise SourceError(f"{file}: the facility has no table {file.stem}")
        return [tables[file.stem] for file in files]

    def check(self, tables: Sequence[Table]) -> None:
        """Reads the files of `tables` to their ends. Raises SourceError naming the file and line at fault."""
        for table in tables:
            for _ in self._read(table):
                pass

    def rows(
        self,
        table: Table,
        after: datetime | None,
        wait: Wait,
        statistics: Statistics,
        note: Note | None = None,
    ) -> Iterator[Row]:
        """The rows later than `after`, with the recording's pauses between them."""
        start: tuple[int, datetime] | None = None
        for row in self._read(table):
            if after is not None and row.time <= after:
                statistics.skipped += 1
                continue
            if start is None:
                start = now(), row.time
            wait(start[0] + round((row.time - start[1]).total_seconds() / self.speed * SECOND))
            yield row

    def _read(self, table: Table) -> Iterator[Row]:
        file = self.folder / f"{table.name}.csv"
        try:
            with file.open(encoding="utf-8-sig", newline="") as text:
                reader = csv.reader(text, strict=True)
                try:
                    yield from self._parse(table, reader)
                except (ValueError, csv.Error) as error:
                    raise SourceError(f"{file}, line {max(1, reader.line_num)}: {error}") from None
        except OSError as error:
            raise SourceError(f"{file}: {error.strerror}") from None

    def _parse(self, table: Table, lines: Iterator[list[str]]) -> Iterator[Row]:
        header = next(lines, None)
        if not header or header[0] != "time":
            raise ValueError("the first line must name the columns, the first of them 'time'")
        places = [_place(table, name) for name in header[1:]]
        if len(set(places)) != len(places):
            twice = next(
                name for name, place in zip(header[1:], places, strict=True) if places.count(place) > 1
            )
            raise ValueError(f"column {twice} is named twice")
        cells = [(place, cell_reader(table.columns[place])) for place in places]
        previous: datetime | None = None
        for line in lines:
            if len(line) != len(header):
                raise ValueError(f"{len(line)} cells, the first line has {len(header)}")
            moment = _moment(line[0], self.zone)
            if previous is not None and moment <= previous:
                raise ValueError(f"time {line[0]} is not later than the line before")
            values: list[Reading] = [None] * len(table.columns)
            for (place, convert), text in zip(cells, line[1:], strict=True):
                if text:
                    try:
                        values[place] = convert(text)
                    except ValueError as error:
                        raise ValueError(f"column {table.columns[place].name}: {error}") from None
            yield Row(moment, tuple(values))
            previous = moment


def _place(table: Table, name: str) -> int:
    for place, column in enumerate(table.columns):
        if name in (column.name, column.signal):
            return place
    raise ValueError(f"table {table.name} has no column or signal '{name}'")


def _moment(text: str, zone: ZoneInfo) -> datetime:
    if re.search(r"[.,]\d{6}\d*[1-9]", text):
        raise ValueError(f"time {text} is finer than a microsecond")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an ISO 8601 time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise ValueError(f"time {text} is twice or never in {zone.key}: write it with its offset")
    return moment.astimezone(UTC)


def cell_reader(column: Column) -> Callable[[str], Reading]:
    """Reads a column's readings from text, exactly; the reader raises ValueError."""
    if column.type in _INTEGER_BITS:
        return lambda text: _integer(text, column.type)
    if column.type == "bit":
        return _bit
    if column.type.startswith("varchar"):
        length = int(column.type.removeprefix("varchar(").removesuffix(")"))
        return lambda text: _text(text, length)
    return lambda text: _number(text, _LARGEST_REAL if column.type == "real" else math.inf)


def _integer(text: str, kind: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"'{text}' is not a {kind}")
    value = int(text)
    half = 1 << _INTEGER_BITS[kind] - 1
    if not -half <= value < half:
        raise ValueError(f"{text} is out of the range of {kind}")
    return value


def _number(text: str, largest: float) -> float:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise ValueError(f"'{text}' is not a number (no reading is an empty cell)")
    value = float(text)
    if not abs(value) <= largest or math.isinf(value):
        raise ValueError(f"{text} is out of range")
    return value


def _bit(text: str) -> bool:
    try:
        return _BITS[text.lower()]
    except KeyError:
        raise ValueError(f"'{text}' is not a bit: 0, 1, false or true") from None


def _text(text: str, length: int) -> str:
    if len(text) > length or "\0" in text:
        raise ValueError(f"'{text}' is longer than varchar({length}) or has a NUL in it")
    return text
