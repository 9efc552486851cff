"""A model of the stored rows in dictionaries: the contract of put_<table> (docs/reference/procedures.md, Put)
without any code of ringlog."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

Values = dict[str, Any]
Key = tuple[datetime, int]

RETENTION = 8
"""weeks, of a table that has one"""
CLOCK_TOLERANCE = timedelta(days=1)


class Refused(Exception):
    """A row that is refused; `numbers`: of the errors of SQL Server and Sybase ASE."""

    def __init__(self, *numbers: int) -> None:
        super().__init__(*numbers)
        self.numbers = numbers


FIGURES = "n, min, max, mean, first, last, nans, nulls"
"""the first fields of Bin, as columns of ringlog's procedures"""


@dataclass(frozen=True)
class Bin:
    """Figures of the values of some rows."""

    n: int
    min: float | None
    max: float | None
    mean: float | None
    first: float | None
    last: float | None
    nans: int
    nulls: int
    std: float | None
    rms: float | None


@dataclass
class Table:
    """A ring and its log."""

    name: str
    rows: int
    nth: int
    columns: dict[str, str]
    """the type of each, by its name"""
    signals: dict[str, str]
    """the column of each signal"""
    retired: set[str] = field(default_factory=set)
    """columns that can no longer be read by their signals"""
    ends: dict[str, list[datetime]] = field(default_factory=dict)
    """when each signal ended as its column retired, and began again, and so on"""
    kept_from: datetime | None = None
    """rows before it are past retention: any of them may be gone"""
    ring: dict[int, tuple[datetime, Values]] = field(default_factory=dict)
    log: dict[Key, Values] = field(default_factory=dict)
    arrival: tuple[int, datetime] | None = None
    """seq_no and time of the latest row without a seq_no"""

    def full(self, values: Values) -> Values:
        """The row with all of the table's columns."""
        return {column: values.get(column) for column in self.columns}

    def put(self, seq_no: int | None, time: datetime | None, values: Values, now: datetime) -> None:
        """Stores a row. Raises Refused."""
        values = self.full(values)
        if time is None:
            raise Refused(515, 233)
        if seq_no is not None and not 1 <= seq_no <= self.rows:
            raise Refused(547)
        if time > now + CLOCK_TOLERANCE:
            assert seq_no is not None
            self._log(seq_no, time, values, check=True)
            return
        arrival = self.arrival
        if seq_no is None:
            seq_no, arrival = self._place(time, values)
        logged = (seq_no - 1) % self.nth == 0
        if logged:
            self._log(seq_no, time, values, check=True)
        if seq_no not in self.ring or self.ring[seq_no][0] <= time:
            self.ring[seq_no] = (time, values)
        self.arrival = arrival

    def instant(self, local: datetime, zone: ZoneInfo, now: datetime) -> datetime:
        """The instant that put assigns to a time without a zone. Raises Refused if clocks were set ahead past
        it.
        """
        earlier, later = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if earlier == later:
            return earlier
        if earlier > later:
            raise Refused(8114)
        newest = max((at for at, _ in self.ring.values()), default=None)
        during = earlier - timedelta(hours=1) <= now <= later + timedelta(hours=1)
        if newest is None or (
            during and min(abs(earlier - newest), abs(later - newest)) > timedelta(minutes=1)
        ):
            return earlier if abs(earlier - now) < abs(later - now) else later
        return earlier if abs(earlier - newest) <= abs(later - newest) else later

    def _place(self, time: datetime, values: Values) -> tuple[int, tuple[int, datetime] | None]:
        """The seq_no of a row without one, and the arrivals after it."""
        same = [seq_no for seq_no, row in self.ring.items() if row == (time, values)]
        if same:
            return same[0], self.arrival
        newest = max(((at, seq_no) for seq_no, (at, _) in self.ring.items()), default=None)
        seq_no = newest[1] if newest else 0
        if newest and self.arrival and self.arrival[1] == newest[0]:
            seq_no = self.arrival[0]
        seq_no = seq_no % self.rows + 1
        return seq_no, (seq_no, max(newest[0], time) if newest else time)

    def _log(self, seq_no: int, time: datetime, values: Values, *, check: bool) -> None:
        there = self.log.get((time, seq_no))
        if there is None:
            self.log[time, seq_no] = values
        elif check and there != values:
            raise Refused(2627, 2601)

    def add_column(self, name: str, of: str) -> None:
        self.columns[name] = of
        self.signals[f"{self.name}/{name}"] = name
        for _, values in [*self.ring.values()]:
            values[name] = None
        for values in self.log.values():
            values[name] = None

    def rename_column(self, old: str, new: str) -> None:
        """Renames a column; the signal's name in the facility file remains."""
        self.columns = {new if name == old else name: of for name, of in self.columns.items()}
        self.signals = {signal: new if column == old else column for signal, column in self.signals.items()}
        self.retired = {new if name == old else name for name in self.retired}
        for values in {
            id(one): one for one in [v for _, v in self.ring.values()] + [*self.log.values()]
        }.values():
            # in the order of the columns
            named = {new if name == old else name: value for name, value in values.items()}
            values.clear()
            values.update(named)

    def change_type(self, name: str, of: str) -> None:
        self.columns[name] = of

    def latest(self) -> tuple[datetime, int, Values] | None:
        """The ring's latest row."""
        rows = ((at, seq_no, row) for seq_no, (at, row) in self.ring.items())
        return max(rows, key=lambda row: row[:2], default=None)

    def logged(self, begin: datetime, end: datetime) -> list[tuple[Key, Values]]:
        """The rows of a span in the log, by time and seq_no; `end` is exclusive."""
        return sorted(
            ((key, values) for key, values in self.log.items() if begin <= key[0] < end),
            key=lambda row: row[0],
        )

    def at(self, moment: datetime) -> tuple[int, datetime, Values] | None:
        """The row that was valid: of ring and log the newest one that is not later."""
        rows = [(at, seq_no, row) for (at, seq_no), row in self.log.items() if at <= moment]
        rows += [(at, seq_no, row) for seq_no, (at, row) in self.ring.items() if at <= moment]
        newest = max(rows, key=lambda row: row[:2], default=None)
        return None if newest is None else (newest[1], newest[0], newest[2])

    def readings(self, signal: str, begin: datetime, end: datetime) -> list[tuple[datetime, Any]]:
        """A signal's values in a span; values from a time in which its column was retired are excluded."""
        column = self.signals[signal]
        ends = self.ends.get(signal, [])
        return [
            (at, row[column])
            for (at, _), row in self.logged(begin, end)
            if sum(moment <= at for moment in ends) % 2 == 0
        ]

    def figures(self, signal: str, begin: datetime, end: datetime) -> Bin | None:
        """Figures of a signal's values in a span; None: there is no row."""
        return figures_of([value for _, value in self.readings(signal, begin, end)])


def figures_of(readings: Sequence[float | None]) -> Bin | None:
    """Figures of readings in the order of their times as numpy has them, without NaN and None; None: there is
    no reading."""
    if not readings:
        return None
    given = [float(reading) for reading in readings if reading is not None]
    values = np.array([value for value in given if not math.isnan(value)])
    nans, nulls = len(given) - len(values), len(readings) - len(given)
    if not len(values):
        return Bin(0, None, None, None, None, None, nans, nulls, None, None)
    with np.errstate(invalid="ignore"):
        figures = (values.min(), values.max(), values.mean(), values[0], values[-1])
        spread = (values.std(), np.sqrt(np.square(values).mean()))
    return Bin(len(values), *map(float, figures), nans, nulls, *map(float, spread))


def plain(value: Any) -> Any:
    """A value in which NaN equals NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def same(a: Any, b: Any) -> bool:
    """Equal except for the order of additions."""
    if a is None or b is None:
        return a is b
    a, b = float(a), float(b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))


def agree(figures: Sequence[Any] | None, wanted: Bin | Sequence[Any] | None) -> bool:
    """Whether these are the first of the wanted figures, in their order."""
    if figures is None or wanted is None:
        return figures is wanted
    if not isinstance(wanted, Bin):
        return all(same(a, b) for a, b in zip(figures, wanted, strict=True))
    *others, std, rms = vars(wanted).values()
    largest = max(abs(wanted.min or 0.0), abs(wanted.max or 0.0))
    return all(
        same(a, b) or (b is std and None not in (a, b) and abs(a - b) < 1e-7 * largest)
        for a, b in zip(figures, [*others, std, rms], strict=False)
    )


def tables() -> dict[str, Table]:
    """Two tables: one with all rows in the log, one with each fifth."""
    columns = {"current": "real", "level": "double", "counts": "int", "open": "bit", "label": "varchar(20)"}
    return {
        name: Table(name, rows, nth, dict(columns), {f"{name}/{column}": column for column in columns})
        for name, rows, nth in (("magnet", 40, 1), ("vacuum", 20, 5))
    }


def facility(of: dict[str, Table], archive: str, renamed: dict[tuple[str, str], str], zone: str) -> str:
    """The facility file. `renamed`: the former name of a column, by its table and name."""
    lines = [f'timezone = "{zone}"', "[history]", 'online = "3 weeks"', f'archive = "{archive}"']
    for table in of.values():
        lines += ["[[table]]", f'name = "{table.name}"', f"rows = {table.rows}", "cycle = 1.0"]
        lines += [f"log = {{ nth = {table.nth} }}"] if table.nth > 1 else ['log = "every"']
        lines += [f'retention = "{RETENTION} weeks"'] if table.kept_from else []
        lines += ['summaries = ["1 min", "10 min", "1 h", "1 day"]']
        for signal, column in table.signals.items():
            lines += ["[[table.column]]", f'name = "{column}"', f'type = "{table.columns[column]}"']
            lines += [f'signal = "{signal}"']
            lines += ["retired = true"] if column in table.retired else []
            if (former := renamed.get((table.name, column))) is not None:
                lines += [f'renamed_from = "{former}"']
    return "\n".join(lines) + "\n"


def monday(moment: datetime, weeks: int = 0) -> datetime:
    """The start of a moment's week, or of an earlier one."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday(), weeks=weeks)


def nights(zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    """The local midnights before clocks are changed in a span."""
    first = begin.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = [first + timedelta(days=day) for day in range(1, (end - begin).days)]
    offset = [day.replace(tzinfo=zone).utcoffset() for day in days]
    return [day for day, before, after in zip(days, offset, offset[1:], strict=False) if before != after]
