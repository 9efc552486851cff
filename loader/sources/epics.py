"""EPICS: a table's columns from process variables, over Channel Access or PV Access (p4p).

A column's signal is the PV's name. A signal that ends in `.SEVR`, `.STAT` or `.TIME` gets the severity, the
alarm status or the time stamp of that PV's reading, from the same subscription: numbers, names in a varchar,
and for `.TIME` seconds since 1970, or the time itself in a datetime. An array fills a waveform; an NTNDArray
of two dimensions is stored row by row, and columns of the signals `<PV>.DIM1` and `<PV>.DIM2` keep its sizes:
the first dimension, which varies fastest (the width), and the second (the height).

Every change of an alarm is an event, and so is a disconnect, after which the PV's columns are NULL. In
monitor mode a row has the latest of its readings' time stamps, with its nanoseconds where the table keeps
them. Native code has the state of each PV, and reads numbers by Channel Access without Python.
"""

import importlib.util
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from ringlog.gateway import _core
from ringlog.loader.sampling import Cells, clock_message
from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import (
    Describe,
    Note,
    Reading,
    Receive,
    Row,
    SourceError,
    Subscriptions,
    Wait,
    pv_access,
)
from ringlog.loader.sources.channel_access import ChannelAccess, monitors
from ringlog.loader.sources.pv_access import PvAccess, text_of
from ringlog.loader.sources.values import fit
from ringlog.loader.statistics import Statistics
from ringlog.schema.alarms import severity_name, status_name
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import Column, SampleTable, Table
from ringlog.schema.moments import moment_of

_FIELDS = (".SEVR", ".STAT", ".TIME", ".DIM1", ".DIM2")
# Seconds without an answer after which a PV counts as disconnected.
_SEARCH = 10.0
# Seconds of one wait for events of the native code, and for further ones after the first.
_PATIENCE, _TOGETHER = 10.0, 0.01
_PACKAGES = {"ca": "epicscorelibs", "pva": "p4p"}
# Digits before the point of a time in seconds since 1970.
_TIME_DIGITS = 10


def field_of(column: Column) -> str:
    """The field that a column stores instead of a PV's value; empty: the value."""
    return column.signal[-5:] if column.signal.endswith(_FIELDS) else ""


def refusal(column: Column) -> str | None:
    """The reason why a column cannot store its field of a PV."""
    kind = column.type
    match field_of(column):
        case "":
            return None
        case ".TIME":
            fits = kind in map(ColumnType, (Kind.DOUBLE, Kind.DATETIME)) or kind.is_text
            fits |= kind.kind is Kind.NUMERIC and (kind.digits or 0) - (kind.scale or 0) >= _TIME_DIGITS
            suitable = "a datetime, double, varchar, or numeric of ten digits before the point"
        case _:
            fits, suitable = kind.kind not in (Kind.BIT, Kind.DATETIME), "a number or a varchar"
    if fits and not kind.is_array:
        return None
    return f"column {column.name} is {kind}, and signal {column.signal} needs {suitable}"


class _Signal:
    """A PV, and the columns that its readings set, with their indexes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[tuple[int, Column]] = []
        self.receive: Callable[[list[tuple[int, Reading | Exception]], int, int, int, int], None]
        self.lose: Callable[[], None]

    @property
    def is_text(self) -> bool:
        """Whether a column needs its value as text, for example an enumeration's label."""
        return any(column.is_text for _, column in self.columns if not field_of(column))

    @property
    def is_native(self) -> bool:
        """Whether native code can set every column from Channel Access."""
        return all(_is_native(column) for _, column in self.columns)

    @property
    def has_array(self) -> bool:
        """Whether a column needs an array, or its sizes."""
        return any(column.is_waveform or field_of(column).startswith(".DIM") for _, column in self.columns)

    def read(
        self,
        value: Any,
        severity: int,
        status: int,
        seconds: int,
        nanoseconds: int,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """A reading has arrived, with its alarm and its time stamp (since 1970), and the sizes of an array's
        dimensions, the fastest first, if it contains them."""
        readings: list[tuple[int, Reading | Exception]] = []
        for index, column in self.columns:
            part = value
            match field_of(column):
                case ".SEVR":
                    part = severity_name(severity) if column.is_text else severity
                case ".STAT":
                    part = status_name(status) if column.is_text else status
                case ".TIME":
                    part = _time(seconds, nanoseconds, column.type)
                case ".DIM1" | ".DIM2" as field:
                    part = _size(value, sizes, int(field[-1]) - 1)
            readings.append((index, _fitted(part, column)))
        self.receive(readings, severity, status, seconds, nanoseconds)


def _is_native(column: Column) -> bool:
    match field_of(column):
        case "":
            return column.type.is_fixed
        case ".SEVR" | ".STAT":
            return column.type.is_integer and column.type.is_fixed
        case ".TIME":
            return column.type == ColumnType(Kind.DOUBLE)
    return False


def _fitted(value: Any, column: Column) -> Reading | Exception:
    """The reading, or the reason why the column cannot hold the value."""
    if isinstance(value, ValueError):
        return value
    try:
        return fit(text_of(value) if column.is_text else value, column)
    except (TypeError, ValueError, OverflowError) as error:
        return error


def _time(seconds: int, nanoseconds: int, kind: ColumnType) -> datetime | Decimal | float | ValueError:
    """A time stamp as its column stores it, with the digits of a numeric or with microseconds."""
    if kind.kind is Kind.NUMERIC:
        return round(Decimal(seconds) + Decimal(nanoseconds).scaleb(-9), kind.scale)
    microseconds = seconds * SECOND + nanoseconds // 1000
    try:
        return moment_of(microseconds) if kind.kind is Kind.DATETIME else microseconds / SECOND
    except OverflowError:
        return ValueError(f"{seconds} s since 1970 are beyond a datetime")


def _message(signal: _Signal, kind: str, first: Any, second: Any) -> str:
    """The message of an event of the native code."""
    match kind:
        case "alarm":
            return f"{signal.name}: {severity_name(first)} {status_name(second)}"
        case "clock" if first is None:
            return f"{signal.name}: it has no time: it was never processed"
        case "clock":
            return clock_message(signal.name, first)
        case "unfit" if first is None:
            return f"{signal.name}: {second}"
        case "unfit":
            return f"{signal.name}: {_fitted(second, dict(signal.columns)[first])!s}"
    return signal.name


@dataclass(frozen=True)
class Epics:
    """PVs over `ca` or `pva`. EPICS's own environment variables give their addresses: EPICS_CA_ADDR_LIST,
    …"""

    protocol: str
    recorded: ClassVar[bool] = False

    @property
    def unhindered(self) -> bool:
        return False

    def check(self, tables: Sequence[Table]) -> None:
        """Raises SourceError when the protocol's package is not installed, or a column cannot store its
        field."""
        for table in tables:
            for column in table.columns:
                if reason := refusal(column):
                    raise SourceError(f"table {table.name}: {reason}")
        package = _PACKAGES[self.protocol]
        if importlib.util.find_spec(package) is None:
            raise SourceError(f"{package} is not installed: pip install 'ringlog[epics]'")

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Sequence[Row]]:
        """Rows as the table's sampling policy makes them."""
        cells = Cells(table, statistics)
        named: dict[str, _Signal] = {}
        for index, column in enumerate(table.columns):
            if index != table.nanoseconds:
                name = column.signal.removesuffix(field_of(column))
                named.setdefault(name, _Signal(name)).columns.append((index, column))
        signals = [*named.values()]
        native = _core.Signals(
            cells.native, [(signal.name, [index for index, _ in signal.columns]) for signal in signals]
        )
        for number, signal in enumerate(signals):
            signal.receive, signal.lose = partial(native.read, number), partial(native.lose, number)
        # kept while rows are read
        subscriptions = _subscribe(signals, native) if self.protocol == "ca" else pv_access.subscribe(signals)

        def note_events() -> None:
            while True:
                for number, moment, kind, first, second in native.events(_PATIENCE):
                    note(kind, moment, _message(signals[number], kind, first, second), None, None)

        threading.Thread(target=note_events, name="epics events", daemon=True).start()
        timer = threading.Timer(_SEARCH, native.miss)
        timer.daemon = True
        timer.start()
        yield from cells.rows(wait)
        del subscriptions

    def subscriptions(self, table: SampleTable, receive: Receive, describe: Describe) -> Subscriptions:
        made = ChannelAccess if self.protocol == "ca" else PvAccess
        return made(table.type, table.deadband, receive, describe)


def _size(value: Any, sizes: Sequence[int] | None, dimension: int) -> int | None:
    """The size of an array in a dimension, counted from 0; 1 for dimensions that it does not have."""
    if value is None:
        return None
    known = sizes if sizes is not None else [len(value)] if hasattr(value, "__len__") else []
    return int(known[dimension]) if dimension < len(known) else 1


def _subscribe(signals: Sequence[_Signal], native: _core.Signals) -> object:
    """Subscribes these signals by Channel Access."""
    access = monitors()
    for number, signal in enumerate(signals):
        if signal.is_native:
            parts = [(index, field_of(column) or str(column.type)) for index, column in signal.columns]
            access.add(number, signal.name, signals=native, parts=parts)
        else:
            access.add(number, signal.name, is_text=signal.is_text, is_array=signal.has_array)
    access.flush()

    def listen() -> None:
        while True:
            events, _ = access.events(_PATIENCE)
            for number, moment, value, severity, status in events:
                if moment is None:
                    signals[number].lose()
                else:
                    signals[number].read(value, severity, status, *divmod(moment, 10**9))
            time.sleep(_TOGETHER)

    threading.Thread(target=listen, name="channel access", daemon=True).start()
    return access
