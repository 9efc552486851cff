"""EPICS PV Access: monitors by p4p, whose queues are read together.

p4p's callback, in the library's thread, only reports that a queue has updates. To read it in each callback
costs three times as much: each time the threads wait for Python's lock.
"""

import queue
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ringlog.loader.sources import Describe, Event, Receive, Wanted
from ringlog.loader.sources.properties import decimal_places, limit_properties, shown, states_text
from ringlog.schema.alarms import PVA_NUMBERS, STATUSES
from ringlog.schema.column_type import ColumnType

# Updates that a queue holds; the server combines those that arrive while it is full.
_QUEUE = 100
# Seconds between two readings of the queues: the longest, and for rows made of updates as they arrive.
_LONGEST, _TOGETHER = 0.25, 0.01
# Seconds without an answer after which a PV has no properties.
_SEARCH = 10.0
_UDF = STATUSES.index("UDF")
_PLAIN = frozenset((float, int, bool, str))


def status_of_pva(status: int, message: str) -> int:
    """Channel Access's number of a PVA alarm status, otherwise a number of its own."""
    if message in STATUSES:
        return STATUSES.index(message)
    return _small(PVA_NUMBERS + status) if status else 0


def _small(number: int) -> int:
    """A number of an alarm; one beyond a smallint, which no alarm has, is the largest."""
    return number if 0 <= number < 2**15 else 2**15 - 1


class Signal(Protocol):
    """Receives the updates of a PV."""

    @property
    def name(self) -> str:
        """The PV's name."""
        ...

    @property
    def is_text(self) -> bool:
        """Whether an enumeration is read as its label."""
        ...

    @property
    def has_array(self) -> bool: ...

    def read(
        self,
        value: Any,
        severity: int,
        status: int,
        seconds: int,
        nanoseconds: int,
        sizes: Sequence[int] | None,
    ) -> None: ...

    def lose(self) -> None: ...


class Monitors:
    def __init__(self) -> None:
        # its libraries start threads: only a writer's own process may load them
        from p4p.client.thread import Context

        # without conversion to numpy and the like, which costs more than all the rest
        self.context = Context("pva", nt=False)
        self._ready: queue.SimpleQueue[_Monitor] = queue.SimpleQueue()

    def add(self, signal: Signal) -> "_Monitor":
        return _Monitor(self.context, signal, self._ready)

    def read(self) -> int:
        """Reads the queues that have updates. Returns the largest number of one."""
        return max((self._ready.get().read() for _ in range(self._ready.qsize())), default=0)

    def listen(self) -> None:
        """Reads updates as they arrive, until the process ends."""
        while True:
            first = self._ready.get()
            time.sleep(_TOGETHER)
            first.read()
            self.read()


class _Monitor:
    """The queue of a PV's updates."""

    def __init__(self, context: Any, signal: Signal, ready: "queue.SimpleQueue[_Monitor]") -> None:
        from p4p._p4p import ClientMonitor, ClientProvider, _Value

        self._signal, self._is_text, self._ready = signal, signal.is_text, ready
        # None: the next update has it, marked or not
        self._alarm: tuple[int, int] | None = None
        # an array may be an NTNDArray, which has its sizes in additional fields
        fields = "" if signal.has_array else "value,alarm,timeStamp"
        request = ClientProvider.makeRequest(f"record[queueSize={_QUEUE}]field({fields})")
        # p4p.client and p4p.wrapper would call Python functions for each callback and each update
        self._changed = _Value.changed
        # the handler may be called before the monitor is there
        self._updates: Any = None
        self._updates = ClientMonitor(
            context._ctxt, signal.name, handler=partial(ready.put, self), pvRequest=request
        )

    def close(self) -> None:
        self._updates.close()

    def read(self) -> int:
        """Reads its updates, and returns their number. p4p calls again only after an empty queue."""
        if self._updates is None:
            self._ready.put(self)
            return 0
        try:
            for number in range(_QUEUE):
                if (update := self._updates.pop()) is None:
                    return number
                if isinstance(update, Exception):
                    self._mark_lost()
                else:
                    self._receive(update)
            self._ready.put(self)
        except Exception as error:
            # a server's structures may lack anything
            print(f"{self._signal.name}: its updates cannot be read: {error!r}", file=sys.stderr, flush=True)
            self.close()
            self._mark_lost()
        return _QUEUE

    def _mark_lost(self) -> None:
        self._alarm = None
        self._signal.lose()

    def _receive(self, update: Any) -> None:
        if self._alarm is None or self._changed(update, "alarm"):
            status = status_of_pva(update["alarm.status"], update["alarm.message"])
            self._alarm = _small(update["alarm.severity"]), status
        value, sizes = None if self._alarm[1] == _UDF else update["value"], None
        if value is not None and type(value) not in _PLAIN:
            if hasattr(value, "choices"):
                value = value.choices[value.index] if self._is_text else value.index
            elif "dimension" in update:
                value, sizes = _image(update)
        seconds, nanoseconds = update["timeStamp.secondsPastEpoch"], update["timeStamp.nanoseconds"]
        self._signal.read(value, *self._alarm, seconds, nanoseconds, sizes)


def text_of(value: Any) -> Any:
    """The text of an array of characters, which ends at a NUL; any other value unchanged."""
    if getattr(value, "ndim", 0) and value.dtype.itemsize == 1:
        return value.tobytes().partition(b"\0")[0].decode(errors="replace")
    return value


def subscribe(signals: Sequence[Signal]) -> object:
    """Subscribes these signals to their PVs, as long as the result is kept."""
    monitors = Monitors()
    kept = [monitors.add(signal) for signal in signals]
    threading.Thread(target=monitors.listen, name="pv access", daemon=True).start()
    return monitors, kept


@dataclass
class _Sampled:
    """A signal of a table of samples."""

    wanted: Wanted
    kind: ColumnType
    receive: Receive
    unread: "queue.SimpleQueue[Wanted | None]"
    """takes it at each connection"""
    is_connected: bool = False

    @property
    def name(self) -> str:
        return self.wanted.address

    @property
    def is_text(self) -> bool:
        return self.kind.is_text

    @property
    def has_array(self) -> bool:
        return self.kind.is_array

    def read(
        self, value: Any, severity: int, status: int, seconds: int, nanoseconds: int, _sizes: object
    ) -> None:
        if not self.is_connected:
            self.is_connected = True
            self.unread.put(self.wanted)
        value = text_of(value) if self.kind.is_text else value
        self.receive(Event(self.wanted.number, seconds * 10**9 + nanoseconds, value, severity, status))

    def lose(self) -> None:
        self.is_connected = False
        self.receive(Event(self.wanted.number, None))


class PvAccess:
    """Monitors for a table of samples. It is used by the thread that made it."""

    def __init__(self, kind: ColumnType, _deadband: str, receive: Receive, describe: Describe) -> None:
        self._kind, self._receive, self._describe = kind, receive, describe
        self._monitors = Monitors()
        self._added: dict[int, _Monitor] = {}
        self._pause = _TOGETHER
        # signals whose properties are to be read
        self._unread: queue.SimpleQueue[Wanted | None] = queue.SimpleQueue()
        threading.Thread(target=self._read_properties, name="properties", daemon=True).start()

    def add(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            sampled = _Sampled(each, self._kind, self._receive, self._unread)
            self._added[each.number] = self._monitors.add(sampled)

    def remove(self, number: int) -> None:
        if (monitor := self._added.pop(number, None)) is not None:
            monitor.close()

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, self._pause))
        most = self._monitors.read()
        # no queue becomes full while the rates do not change
        self._pause = self._pause / 2 if most > _QUEUE // 4 else min(2 * self._pause, _LONGEST)

    def close(self) -> None:
        self._unread.put(None)
        self._monitors.context.close()

    def _read_properties(self) -> None:
        """Reads them at each connection: updates that had them would cost a third more."""
        while (first := self._unread.get()) is not None:
            found = [first]
            while not self._unread.empty() and (other := self._unread.get()) is not None:
                found.append(other)
            addresses = [each.address for each in found]
            # servers that are no IOC have none
            records = [f"{address.partition('.')[0]}.RTYP" for address in addresses]
            fields = ["field(value)"] * len(records) + ["field(value,display,valueAlarm)"] * len(records)
            read = self._monitors.context.get([*records, *addresses], fields, timeout=_SEARCH, throw=False)
            for index, wanted in enumerate(found):
                record_type, properties = read[index], read[len(found) + index]
                described = {} if isinstance(record_type, Exception) else {"record_type": record_type.value}
                described |= {} if isinstance(properties, Exception) else _properties(properties)
                if described:
                    self._describe(wanted.number, described)


def _properties(read: Any) -> dict[str, Any]:
    """The columns of ringlog.signal of EPICS's normative types."""
    found: dict[str, Any] = {}
    if "display" in read:
        found["description"] = shown(read.display.description)
        if "units" in read.display:
            found["unit"] = shown(read.display.units)
        if "precision" in read.display:
            found["decimals"] = decimal_places(read.display.precision)
    if "valueAlarm" in read:
        alarm = read.valueAlarm
        found |= limit_properties(alarm.lowWarningLimit, alarm.highWarningLimit)
        found |= limit_properties(alarm.lowAlarmLimit, alarm.highAlarmLimit, "alarm")
    if hasattr(getattr(read, "value", None), "choices"):
        found["states"] = states_text(read.value.choices)
    return found


def _image(update: Any) -> tuple[Any, Sequence[int]]:
    """Points and sizes of an NTNDArray (EPICS normative types), whose first dimension is the fastest. Points
    that a waveform cannot hold are replaced by a ValueError."""
    sizes = [dimension.size for dimension in update.dimension]
    codec = update.codec.name if "codec" in update else ""
    if codec:
        return ValueError(
            f"an array compressed by {codec}: configure its source to send it uncompressed"
        ), sizes
    if len(sizes) > 2:
        return ValueError(f"an array of {len(sizes)} dimensions: a waveform has one or two"), sizes
    return update.value, sizes
