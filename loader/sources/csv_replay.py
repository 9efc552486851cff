"""Replay of recordings: one CSV file per table, <table>.csv.

The first line names the columns: `time`, then columns of the table by their name or signal name. Columns that
are missing in the file, and empty cells, have no reading. Times are ISO 8601, and increase from line to line;
without an offset they are of the facility's time zone. A table with nanoseconds takes them from the times.
"""

import csv
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from zoneinfo import ZoneInfo

from ringlog.loader.sources import Reading, Row, SourceError
from ringlog.loader.sources.replay import Replay, below_microseconds, moment_from, places_of
from ringlog.loader.sources.values import LARGEST_REAL, decimal, within
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Column, Table

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BITS = {"0": False, "1": True, "false": False, "true": True}


@dataclass(frozen=True)
class CsvReplay(Replay):
    """Recordings as CSV."""

    suffix: ClassVar[str] = "csv"
    form: ClassVar[str] = "CSV"

    def read(self, table: Table) -> Iterator[Row]:
        """All rows of the table's file, in order. Raises SourceError naming file and line."""
        file = self.file(table)
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
        places = places_of(table, header[1:])
        cells = [(place, cell_reader(table.columns[place], self.zone)) for place in places]
        # a column of the file takes precedence over the nanoseconds of its times
        below = None if table.nanoseconds in places else table.nanoseconds
        previous: datetime | None = None
        for line in lines:
            if len(line) != len(header):
                raise ValueError(f"{len(line)} cells, the first line has {len(header)}")
            when, nanoseconds = below_microseconds(line[0]) if below is not None else (line[0], 0)
            moment = moment_from(when, self.zone)
            if previous is not None and moment <= previous:
                raise ValueError(f"time {line[0]} is not later than the line before")
            values: list[Reading] = [None] * len(table.columns)
            if below is not None:
                values[below] = nanoseconds
            for (place, convert), text in zip(cells, line[1:], strict=True):
                if text:
                    try:
                        values[place] = convert(text)
                    except ValueError as error:
                        raise ValueError(f"column {table.columns[place].name}: {error}") from None
            yield Row(moment, tuple(values))
            previous = moment


def cell_reader(column: Column, zone: ZoneInfo) -> Callable[[str], Reading]:
    """A function that reads a column's readings from text, exactly; it raises ValueError."""
    if column.type.is_integer:
        return lambda text: _integer(text, column)
    if column.type.kind is Kind.BIT:
        return _bit
    if column.is_text:
        return lambda text: within(text, column)
    if column.type.kind is Kind.NUMERIC:
        return lambda text: decimal(text, column)
    if column.type.kind is Kind.DATETIME:
        return lambda text: moment_from(text, zone).isoformat()
    return _number_reader(column)


def _integer(text: str, column: Column) -> Reading:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"'{text}' is not a {column.type}")
    return within(int(text), column)


def _number_reader(column: Column) -> Callable[[str], Reading]:
    """Reads most cells of most files, so it computes nothing that all cells of a column share."""
    largest = LARGEST_REAL if column.type.kind is Kind.REAL else sys.float_info.max
    is_number = _NUMBER.fullmatch

    def read(text: str) -> Reading:
        if not is_number(text):
            raise ValueError(f"'{text}' is not a number (no reading is an empty cell)")
        value = float(text)
        if not -largest <= value <= largest:
            raise ValueError(f"{text} is out of range")
        return value

    return read


def _bit(text: str) -> bool:
    try:
        return _BITS[text.lower()]
    except KeyError:
        raise ValueError(f"'{text}' is not a bit: 0, 1, false or true") from None
