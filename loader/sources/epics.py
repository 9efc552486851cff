"""EPICS: a table's columns from process variables, over Channel Access (aioca) or PV Access (p4p).

A column's signal is the PV's name. A signal that ends in `.SEVR`, `.STAT` or `.TIME` gets the severity, the
alarm status or the time stamp of that PV's reading, from the same subscription: numbers, names in a varchar,
and for `.TIME` seconds since 1970. An array fills a waveform; an NTNDArray of two dimensions is stored row by
row, and columns of the signals `<PV>.DIM1` and `<PV>.DIM2` keep its sizes: the first dimension, which varies
fastest (the width), and the second (the height).

Every change of an alarm is an event, and so is a disconnect, after which the PV's columns are NULL. In
monitor mode a row has the latest of its readings' time stamps, with its nanoseconds where the table keeps
them.
"""

import asyncio
import importlib.util
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from ringlog.gateway import _core
from ringlog.loader.sampling import Cells, clock_message
from ringlog.loader.schedule import SECOND, now
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
from ringlog.loader.sources.channel_access import ChannelAccess
from ringlog.loader.sources.pv_access import PvAccess, text_of
from ringlog.loader.sources.values import fit
from ringlog.loader.statistics import Statistics
from ringlog.schema.alarms import SEVERITIES, STATUSES
from ringlog.schema.facility import Column, SampleTable, Table

_FIELDS = (".SEVR", ".STAT", ".TIME", ".DIM1", ".DIM2")
# Seconds without an answer after which a PV counts as disconnected.
_SEARCH = 10.0
# Seconds of one wait for events of the native code.
_PATIENCE = 10.0
_PACKAGES = {"ca": "aioca", "pva": "p4p"}


class _Signal:
    """A PV, and the columns that its readings set."""

    def __init__(self, name: str, cells: Cells, note: Note) -> None:
        self.name = name
        self.columns: list[tuple[int, Column, str]] = []
        self._cells = cells
        self._note = note
        self._alarm = (0, 0)
        # readings arrive in a thread of their library, the end of the search in another
        self._lock = threading.RLock()
        # None: not found yet
        self._connected: bool | None = None
        self._unfit = False

    @property
    def is_text(self) -> bool:
        """Whether a column needs its value as text, for example an enumeration's label."""
        return any(column.is_text for _, column, field in self.columns if not field)

    @property
    def is_native(self) -> bool:
        """Whether every column is a number, which native code reads from Channel Access."""
        return all(column.type.is_fixed and not field.startswith(".DIM") for _, column, field in self.columns)

    @property
    def has_array(self) -> bool:
        """Whether a column needs an array, or its sizes."""
        return any(column.is_waveform or field.startswith(".DIM") for _, column, field in self.columns)

    def read(
        self,
        value: Any,
        severity: int,
        status: int,
        status_name: str,
        seconds: int,
        nanoseconds: int,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """A reading has arrived, with its alarm and its time stamp (since 1970), and the sizes of an array's
        dimensions, the fastest first, if it contains them."""
        with self._lock:
            sent = seconds * SECOND + nanoseconds // 1000
            stamp = self._cells.plausible(sent, self.name, self._note)
            if self._connected is False:
                self._note("connected", stamp, self.name, None, None)
            self._connected = True
            if (severity, status) != self._alarm:
                self._alarm = severity, status
                self._note("alarm", stamp, self._alarm_message(severity, status_name), None, None)
            readings: list[tuple[int, Reading]] = []
            for place, column, field in self.columns:
                text = column.is_text
                reading: Reading
                if field == ".SEVR":
                    reading = _severity_name(severity) if text else severity
                elif field == ".STAT":
                    reading = status_name if text else status
                elif field == ".TIME":
                    reading = sent / SECOND
                elif field.startswith(".DIM"):
                    reading = _size(value, sizes, int(field[-1]) - 1)
                else:
                    reading = self._fit(value, column, stamp)
                readings.append((place, reading))
            self._cells.set(readings, stamp, nanoseconds % 1000 if stamp == sent else 0)

    def miss(self) -> None:
        """The search has timed out: a PV that was not found counts as missing."""
        with self._lock:
            if self._connected is None:
                self._connected = True
                self.lose()

    def lose(self) -> None:
        """The PV has disconnected."""
        with self._lock:
            if self._connected:
                self._connected = False
                moment = now()
                self._note("disconnected", moment, self.name, None, None)
                self._cells.set([(place, None) for place, _, _ in self.columns], moment)

    def note_native(self, kind: str, moment: int, first: Any, second: Any) -> None:
        """An event of the native code."""
        message = self.name
        match kind:
            case "alarm":
                message = self._alarm_message(first, _status_name(second))
            case "clock":
                message = clock_message(self.name, first)
            case "unfit":
                column = next(column for place, column, _ in self.columns if place == first)
                message = f"{self.name}: {_unfit_message(second, column)}"
        self._note(kind, moment, message, None, None)

    def _alarm_message(self, severity: int, status_name: str) -> str:
        return f"{self.name}: {_severity_name(severity)} {status_name}"

    def _fit(self, value: Any, column: Column, stamp: int) -> Reading:
        try:
            if isinstance(value, ValueError):
                raise value
            reading = fit(text_of(value) if column.is_text else value, column)
        except (TypeError, ValueError, OverflowError) as error:
            if not self._unfit:
                self._note("unfit", stamp, f"{self.name}: {error}", None, None)
            self._unfit = True
            return None
        self._unfit = False
        return reading


@dataclass(frozen=True)
class Epics:
    """PVs over `ca` or `pva`. EPICS's own environment variables give their addresses: EPICS_CA_ADDR_LIST,
    …"""

    protocol: str
    recorded: ClassVar[bool] = False

    @property
    def unhindered(self) -> bool:
        return False

    def check(self) -> None:
        """Raises SourceError when the protocol's package is not installed."""
        package = _PACKAGES[self.protocol]
        if importlib.util.find_spec(package) is None:
            raise SourceError(f"{package} is not installed: pip install 'ringlog[epics]'")

    def rows(
        self, table: Table, after: datetime | None, wait: Wait, statistics: Statistics, note: Note
    ) -> Iterator[Row]:
        """Rows as the table's sampling policy makes them."""
        cells = Cells(table, statistics)
        signals: dict[str, _Signal] = {}
        for place, column in enumerate(table.columns):
            if place == table.nanoseconds:
                continue
            field = column.signal[-5:] if column.signal.endswith(_FIELDS) else ""
            name = column.signal.removesuffix(field)
            signal = signals.setdefault(name, _Signal(name, cells, note))
            signal.columns.append((place, column, field))
        native = [signal for signal in signals.values() if self.protocol == "ca" and signal.is_native]
        others = [signal for signal in signals.values() if signal not in native]
        # kept while rows are read
        subscriptions: list[object] = []
        if others:
            subscribe = _subscribe_ca if self.protocol == "ca" else pv_access.subscribe
            subscriptions.append(subscribe(others))
        missing: list[Callable[[], None]] = [signal.miss for signal in others]
        if native:
            missing.append(_subscribe_natively(native, cells).miss)
        timer = threading.Timer(_SEARCH, lambda: [miss() for miss in missing])
        timer.daemon = True
        timer.start()
        yield from cells.rows(wait)
        del subscriptions

    def subscriptions(self, table: SampleTable, receive: Receive, describe: Describe) -> Subscriptions:
        """The monitors of a table of samples."""
        made = ChannelAccess if self.protocol == "ca" else PvAccess
        return made(table.type, table.deadband, receive, describe)


def _size(value: Any, sizes: Sequence[int] | None, dimension: int) -> int | None:
    """The size of an array in a dimension, counted from 0; 1 for dimensions that it does not have."""
    if value is None:
        return None
    known = sizes if sizes is not None else [len(value)] if hasattr(value, "__len__") else []
    return int(known[dimension]) if dimension < len(known) else 1


def _severity_name(severity: int) -> str:
    return SEVERITIES[severity] if severity < len(SEVERITIES) else f"SEVERITY_{severity}"


def _status_name(status: int) -> str:
    return STATUSES[status] if status < len(STATUSES) else f"STATUS_{status}"


def _unfit_message(value: Any, column: Column) -> str:
    """The reason why a column cannot hold a value; () stands for an array."""
    if value == ():
        return "an array does not fit a column"
    try:
        fit(value, column)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    raise AssertionError(f"{value} fits {column.type}")


def _subscribe_natively(signals: Sequence[_Signal], cells: Cells) -> _core.ChannelAccess:
    # its library starts threads: only a writer's own process may load it
    from epicscorelibs.path import get_lib

    variables = [
        (signal.name, [(place, field or str(column.type)) for place, column, field in signal.columns])
        for signal in signals
    ]
    access = _core.ChannelAccess(get_lib("ca"), variables, cells.native)

    def note() -> None:
        while True:
            for number, moment, kind, first, second in access.events(_PATIENCE):
                signals[number].note_native(kind, moment, first, second)

    threading.Thread(target=note, name="channel access events", daemon=True).start()
    return access


def _subscribe_ca(signals: Sequence[_Signal]) -> object:
    # its libraries start threads: only a writer's own process may load them
    import aioca

    def received(signal: _Signal) -> Callable[[Any], None]:
        def receive(value: Any) -> None:
            if not value.ok:
                signal.lose()
                return
            signal.read(value, value.severity, value.status, _status_name(value.status), *value.raw_stamp)

        return receive

    def subscribe(signal: _Signal, datatype: type | None) -> None:
        aioca.camonitor(
            signal.name,
            received(signal),
            datatype=datatype,
            format=aioca.FORMAT_TIME,
            all_updates=True,
            notify_disconnect=True,
        )

    async def subscribe_text(signal: _Signal) -> None:
        channel = await aioca.cainfo(signal.name, timeout=None)
        # otherwise a text of characters would be an array of texts, one for each
        subscribe(signal, None if channel.datatype_strings[channel.datatype] == "char" else str)

    async def listen() -> None:
        texts = []
        for signal in signals:
            if signal.is_text:
                texts.append(asyncio.ensure_future(subscribe_text(signal)))
            else:
                subscribe(signal, None)
        await asyncio.gather(*texts)
        await asyncio.Event().wait()

    thread = threading.Thread(target=lambda: asyncio.run(listen()), name="channel access", daemon=True)
    thread.start()
    return thread
