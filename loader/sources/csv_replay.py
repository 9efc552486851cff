"""Replay of recordings: one CSV file per table, <table>.csv.

The first line names the columns: `time`, then columns of the table by their name or signal name. Columns that
are missing in the file, and empty cells, have no reading. Times are ISO 8601, and increase from line to line;
without an offset they are of the facility's time zone. A table with nanoseconds takes them from the times.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from zoneinfo import ZoneInfo

from ringlog.gateway import _core
from ringlog.loader.sources import Reading, Row, SourceError
from ringlog.loader.sources.replay import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    Replay,
    below_microseconds,
    indexes_of,
    moment_from,
)
from ringlog.loader.sources.values import LARGEST_REAL, decimal, within
from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Column, Table
from ringlog.schema.moments import microseconds

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BITS = {"0": False, "1": True, "false": False, "true": True}


@dataclass(frozen=True)
class CsvReplay(Replay):
    """Recordings as CSV."""

    suffix: ClassVar[str] = "csv"
    form: ClassVar[str] = "CSV"

    def read(self, table: Table) -> Iterator[Sequence[Row]]:
        """All rows of the table's file, in order. Raises SourceError naming file and line."""
        path = self.file(table)
        try:
            file = _core.CsvFile(path)
            try:
                self._convert(table, file)
                while rows := file.read(BLOCK_ROWS, BLOCK_BYTES):
                    yield [Row(*row) for row in rows]
            except ValueError as error:
                raise SourceError(f"{path}, line {max(1, file.line)}: {error}") from None
        except OSError as error:
            raise SourceError(f"{path}: {os.strerror(error.errno or 0)}") from None

    def _convert(self, table: Table, file: _core.CsvFile) -> None:
        """Reads the first line, and prepares the conversion of the others."""
        header = file.names()
        if not header or header[0] != "time":
            raise ValueError("the first line must name the columns, the first of them 'time'")
        indexes = indexes_of(table, header[1:])
        # a column of the file takes precedence over the nanoseconds of its times
        below = None if table.nanoseconds in indexes else table.nanoseconds
        previous: int | None = None

        def moment(text: str) -> tuple[int, int]:
            nonlocal previous
            when, nanoseconds = below_microseconds(text) if below is not None else (text, 0)
            taken = microseconds(moment_from(when, self.zone))
            if previous is not None and taken <= previous:
                raise ValueError(f"time {text} is not later than the line before")
            previous = taken
            return taken, nanoseconds

        columns = [table.columns[index] for index in indexes]
        cells = [
            (index, _kind(column), _shown(column, self.zone))
            for index, column in zip(indexes, columns, strict=True)
        ]
        file.convert(len(table.columns), cells, below, moment)


def _kind(column: Column) -> "_core.CellKind":
    """A column's type in the form for native code, which reads most cells; the others are left to
    `cell_reader`."""
    kind = column.type
    if kind.is_array:
        return str(kind)
    if kind.bits is not None:
        half = 1 << kind.bits - 1
        return -half, half - 1
    return _largest(column) if kind.is_float else kind.length or str(kind)


def _shown(column: Column, zone: ZoneInfo) -> Callable[[str], str]:
    """A function that reads a cell into JSON."""
    read = cell_reader(column, zone)

    def shown(text: str) -> str:
        try:
            return json.dumps(read(text), ensure_ascii=False)
        except ValueError as error:
            raise ValueError(f"column {column.name}: {error}") from None

    return shown


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
    largest = _largest(column)
    is_number = _NUMBER.fullmatch

    def read(text: str) -> Reading:
        if not is_number(text):
            raise ValueError(f"'{text}' is not a number (no reading is an empty cell)")
        value = float(text)
        if not -largest <= value <= largest:
            raise ValueError(f"{text} is out of range")
        return value

    return read


def _largest(column: Column) -> float:
    return LARGEST_REAL if column.type.kind is Kind.REAL else sys.float_info.max


def _bit(text: str) -> bool:
    try:
        return _BITS[text.lower()]
    except KeyError:
        raise ValueError(f"'{text}' is not a bit: 0, 1, false or true") from None
