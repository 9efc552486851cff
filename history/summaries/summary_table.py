"""The summaries of a table: columns, levels, and progress."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.types.range import Range

from ringlog.history.summaries import blocks, sample_spans, waveforms
from ringlog.history.summaries.span_numbers import unique
from ringlog.history.summaries.spans import Spans
from ringlog.schema import catalogue
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import EARLIEST, LOG_TABLES

SIGNALS = 2000
"""the most signals of samples that are summarised together"""


@dataclass(frozen=True, order=True)
class Bounds:
    """A week of a log."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class SummaryTable:
    """A table with its summarised columns and the progress of its summaries."""

    name: str
    levels: tuple[int, ...]
    until: datetime | None
    cycle: float
    """seconds from row to row; of samples the shortest span"""
    numbers: dict[str, ColumnType]
    """Columns of single numbers."""
    waveforms: dict[str, ColumnType]
    single: bool
    """whether the summaries have single precision"""
    kept_from: datetime
    """time before which rows are past retention"""
    dropped_until: datetime | None
    """time before which rows were dropped by a former retention, most of them"""
    damaged: tuple[Bounds, ...] = ()
    """unreadable weeks, in order: their spans are marked until they can be read"""
    signals: tuple[int, ...] | None = None
    """numbers of its signals, ascending, where it is a table of samples"""

    @property
    def unreadable(self) -> list[Range[datetime]]:
        return [Range(week.start, week.end) for week in self.damaged]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the summarised columns."""
        if self.signals is not None:
            return tuple(f"{number}{what}" for what in ("", sample_spans.SEVERITY) for number in self.signals)
        return (*self.numbers, *(name for column in self.waveforms for name in waveforms.names(column)))

    def read(self, connection: psycopg.Connection, level: int, numbers: np.ndarray) -> Spans:
        """The stored ones of these spans."""
        are_rows = self.signals is None
        spans = blocks.read(connection, self.name, level, self.columns, numbers, are_rows=are_rows)
        return spans if are_rows else sample_spans.filled(spans)

    def store(self, connection: psycopg.Connection, level: int, spans: Spans) -> Spans:
        """Stores spans. Returns all spans of their blocks."""
        are_rows = self.signals is None
        if not are_rows:
            spans = sample_spans.without_alarms(spans)
        stored = blocks.store(
            connection, self.name, level, self.columns, spans, self.single, are_rows=are_rows
        )
        return stored if are_rows else sample_spans.filled(stored)

    def as_it_is(self, connection: psycopg.Connection) -> "SummaryTable":
        """The same with the columns, or signals, of this transaction: a change of the table may have preceded
        it."""
        return replace(self, **_columns(connection, self.name, self.signals is not None))

    def parts(
        self, marks: Iterable[tuple[int, str | None]]
    ) -> Iterator[tuple["SummaryTable", np.ndarray, bool]]:
        """The parts that are summarised one after the other: each with its spans among these marks, which are
        of a column or of all, and whether new spans are made for it."""
        if self.signals is None:
            yield self, unique(number for number, _ in marks), True
            return
        of_signal: dict[int, set[int]] = {}
        of_all: set[int] = set()
        for number, column in marks:
            (of_all if column is None else of_signal.setdefault(int(column), set())).add(number)
        for first in range(0, len(self.signals), SIGNALS):
            yield (replace(self, signals=self.signals[first : first + SIGNALS]), unique(of_all), True)
        together: dict[frozenset[int], list[int]] = {}
        for signal in sorted({*of_signal} & {*self.signals}):
            together.setdefault(frozenset(of_signal[signal]), []).append(signal)
        for numbers, signals in together.items():
            yield replace(self, signals=(*signals,)), unique(numbers), False


def summarised_columns(connection: psycopg.Connection, table: str) -> dict[str, ColumnType]:
    """The columns of a log that are summarised: numbers, and waveforms of numbers."""
    stored = catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))
    types = {column: ColumnType.of_postgresql(kind) for column, kind in stored.items()}
    return {
        column: kind
        for column, kind in types.items()
        if kind is not None and (kind.is_fixed or kind.is_packed) and column not in KEY_COLUMNS
    }


def reached(connection: psycopg.Connection, table: str) -> datetime | None:
    """The time up to which a table's summaries are made."""
    found = connection.execute(
        "select until from ringlog.summarised where table_name = %s", [table]
    ).fetchone()
    assert found is not None
    until: datetime | None = found[0]
    return until


def summary_table(connection: psycopg.Connection, name: str) -> SummaryTable | None:
    """The summaries of a table; None: it has none."""
    found = connection.execute(
        "select table_name, levels, until, coalesce(log_period, cycle * log_nth), %s, null"
        " from ringlog.summarised join ringlog.logged_table using (table_name)"
        " where table_name = %s and levels <> '{}'",
        [EARLIEST, name],
    ).fetchall()
    return next(summary_tables(connection, found), None)


def summary_tables(connection: psycopg.Connection, due: Iterable[tuple[Any, ...]]) -> Iterator[SummaryTable]:
    """These tables with their columns, which are looked up one table at a time."""
    for name, levels, until, period, kept_from, dropped_until in due:
        table = SummaryTable(
            name,
            tuple(levels),
            until,
            period or levels[0],
            **_columns(connection, name, period is None),
            kept_from=kept_from,
            dropped_until=dropped_until,
        )
        if table.columns:
            yield table


def _columns(connection: psycopg.Connection, table: str, is_of_samples: bool) -> dict[str, Any]:
    """The attributes of a SummaryTable about its columns or signals."""
    columns = {} if is_of_samples else summarised_columns(connection, table)
    arrays = catalogue.columns(connection, sql.Identifier("summary", table))
    return {
        "numbers": {column: kind for column, kind in columns.items() if kind.is_fixed},
        "waveforms": {column: kind for column, kind in columns.items() if kind.is_packed},
        "single": arrays["min"] == "real[]",
        "signals": _signals(connection, table) if is_of_samples else None,
    }


def _signals(connection: psycopg.Connection, table: str) -> tuple[int, ...]:
    query = "select number from ringlog.sample_signal where table_name = %s order by number"
    return tuple(number for (number,) in connection.execute(query, [table]))
