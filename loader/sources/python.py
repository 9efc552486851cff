"""A Python function as a source: your own data acquisition.

`python:module:function` names it; the module is found as `import` finds it, and in the current folder. The
function takes the table (its name, cycle and columns) and is one of two kinds:

    def read(table):                 # called once a cycle: the readings of that moment
        return {"current": 99.5, "sr_mag_2/current": None}

    def rows(table):                 # a generator: rows when it has them
        while True:
            yield datetime.now(UTC), {"current": device.wait()}

Keys are names of columns or signals; an omitted one has no reading. A value that does not fit its column is
no reading, and an event. If `read` raises there is no row for this cycle, but an event; if it returns None
there is neither. A generator that raises is started again with its process; one that returns has ended. The
function runs in a process of its own for each table.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from ringlog.loader.schedule import Schedule
from ringlog.loader.sources import Changed, Note, Reading, Row, SourceError, Wait
from ringlog.loader.sources.values import fit
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table
from ringlog.schema.moments import microseconds


@dataclass(frozen=True)
class Python:
    """The function `name` of `module`."""

    module: str
    name: str
    recorded: ClassVar[bool] = False

    @property
    def unhindered(self) -> bool:
        return False

    def check(self) -> None:
        """Raises SourceError when there is no such module. It is not loaded: it may start threads, and
        writers are forked."""
        _look_in_current_folder()
        try:
            found = importlib.util.find_spec(self.module)
        except (ImportError, ValueError) as error:
            raise SourceError(f"python:{self.module}: {error}") from None
        if found is None:
            raise SourceError(f"python:{self.module}: there is no module of this name")

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Sequence[Row]]:
        """The function's rows. Raises SourceError if it does not exist, or returns anything but rows."""
        function = self._function()
        readings = _Readings(self, table, note)
        if inspect.isgeneratorfunction(function):
            yield from self._generated(function, table, wait, readings)
            return
        while True:
            try:
                yield from self._scanned(function, table, wait, statistics, readings, note)
            except Changed as change:
                table = change.table

    def _function(self) -> Callable[[Table], Any]:
        _look_in_current_folder()
        try:
            function = getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError) as error:
            raise SourceError(f"{self}: {error}") from error
        if not callable(function):
            raise SourceError(f"{self} is not callable")
        return function  # type: ignore[no-any-return]

    def _scanned(
        self,
        function: Callable[[Table], Any],
        table: Table,
        wait: Wait,
        statistics: Statistics,
        readings: "_Readings",
        note: Note,
    ) -> Iterator[Sequence[Row]]:
        schedule = Schedule.of(table.name, table.cycle)
        for due in schedule.instants(wait, statistics):
            try:
                given = function(table)
            except Exception as error:
                note("unread", due, f"{self}: {type(error).__name__}: {error}", None, None)
                statistics.message = f"{type(error).__name__}: {error}"
                continue
            if given is not None:
                yield [Row.of(due, readings.take(given, due))]

    def _generated(
        self, function: Callable[[Table], Any], table: Table, wait: Wait, readings: "_Readings"
    ) -> Iterator[Sequence[Row]]:
        for row in function(table):
            # the generator decides when rows are made
            with suppress(Changed):
                wait(0)
            try:
                moment, given = row
            except (TypeError, ValueError):
                raise SourceError(f"{self} gave {row!r}, which is not (time, readings)") from None
            if not isinstance(moment, datetime) or moment.tzinfo is None:
                raise SourceError(f"{self} gave the time {moment!r}: it must be a datetime with its zone")
            taken = microseconds(moment)
            yield [Row.of(taken, readings.take(given, taken))]

    def __str__(self) -> str:
        return f"python:{self.module}:{self.name}"


class _Readings:
    """Brings readings by name into the order of the table's columns."""

    def __init__(self, source: Python, table: Table, note: Note) -> None:
        self._source = source
        self._columns = table.columns
        self._indexes = {column.signal: index for index, column in enumerate(table.columns)}
        self._indexes |= {column.name: index for index, column in enumerate(table.columns)}
        self._note = note
        # columns whose latest value did not fit
        self._unfit: set[int] = set()

    def take(self, given: Any, moment: int) -> tuple[Reading, ...]:
        if not isinstance(given, Mapping):
            raise SourceError(f"{self._source} gave {given!r}, which is not a mapping of names to readings")
        readings: list[Reading] = [None] * len(self._columns)
        for name, value in given.items():
            index = self._indexes.get(name)
            if index is None:
                raise SourceError(
                    f"{self._source} gave a reading of '{name}', which is neither a column nor a signal"
                )
            try:
                readings[index] = fit(value, self._columns[index])
            except (TypeError, ValueError, OverflowError) as error:
                if index not in self._unfit:
                    self._note("unfit", moment, f"{self._columns[index].name}: {error}", None, None)
                self._unfit.add(index)
            else:
                self._unfit.discard(index)
        return tuple(readings)


def _look_in_current_folder() -> None:
    # last: a file there must not replace a library
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)
