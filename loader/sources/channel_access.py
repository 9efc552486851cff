"""EPICS Channel Access for tables of samples: monitors by EPICS's libca, in the thread that waits for them.

Its functions and structures are those of cadef.h and db_access.h of EPICS Base 7.
"""

import ctypes
import struct
import time
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ringlog.gateway import _core
from ringlog.loader.sources import Describe, Event, Receive, SourceError, Wanted
from ringlog.loader.sources.properties import decimal_places, limit_properties, states_text
from ringlog.schema.column_type import ColumnType

_NORMAL = 1
_UP = 6
_VALUE, _LOG, _ALARM, _PROPERTY = 1, 2, 4, 8
_TEXT, _CHARACTERS = 0, 4
# The first of the types DBR_TIME_…, which follow the order of the field types.
_TIME = 14
# Seconds from 1970 to 1990, from which EPICS counts.
_EPOCH = 631_152_000
_HEAD = struct.Struct("=hhII")
# The place of a value in DBR_TIME_STRING, where it has 40 bytes, and in DBR_TIME_CHAR.
_TEXT_AT, _TEXT_END, _CHARACTERS_AT = 12, 52, 15
_MOST_CHARACTERS = 16_384
# The place of the first point in each DBR_TIME_…, and numpy's type of it.
_POINTS = {1: (14, "i2"), 2: (12, "f4"), 3: (14, "u2"), 4: (15, "u1"), 5: (12, "i4"), 6: (16, "f8")}
# DBR_GR_ENUM: number of names, and 16 of them. DBR_GR_DOUBLE, as which the server gives all numbers: digits,
# unit, and the limits of displays, alarms and warnings, NaN where a record has none.
_GR_ENUM, _GR_DOUBLE, _ENUM = 24, 27, 3
_NAMES = struct.Struct("=4xh416s")
_NAME = 26
_GRAPHIC = struct.Struct("=4xhxx8s6d")
# Fields of records that are read at each connection, and the properties that they become.
_FIELDS = (("RTYP", "record_type"), ("DESC", "description"), ("EGU", "unit"))
_RECORD_TYPE, _DESCRIPTION, _UNIT = range(3)
# Fields that are read at once, and seconds that one may take: channels that are not records have none.
_AT_ONCE = 1000
_PATIENCE = 10.0
# The value of a signal of several points, which no sample holds.
_ARRAY = SimpleNamespace(ndim=1)


class _Connection(ctypes.Structure):
    _fields_ = (("channel", ctypes.c_void_p), ("operation", ctypes.c_long))


class _Monitor(ctypes.Structure):
    _fields_ = (
        ("user", ctypes.c_void_p),
        ("channel", ctypes.c_void_p),
        ("kind", ctypes.c_long),
        ("count", ctypes.c_long),
        ("value", ctypes.c_void_p),
        ("status", ctypes.c_int),
    )


_OnConnection = ctypes.CFUNCTYPE(None, _Connection)
_OnEvent = ctypes.CFUNCTYPE(None, _Monitor)


class ChannelAccess:
    """Monitors with time stamps and alarms, used by the thread that made it. Native code keeps the events of
    numbers until `wait` ends: a callback in Python is slow in the library's threads."""

    def __init__(self, kind: ColumnType, deadband: str, receive: Receive, describe: Describe) -> None:
        # its library starts threads: only a writer's own process may load it
        from epicscorelibs.path import get_lib

        self._is_text, self._is_array = kind.is_text, kind.is_array
        self._deadband = deadband
        self._receive = receive
        self._describe = describe
        self._wanted: dict[int, Wanted] = {}
        self._channels: dict[int, ctypes.c_void_p] = {}
        # field type and ids of the subscriptions
        self._monitors: dict[int, tuple[int, list[ctypes.c_void_p]]] = {}
        # signals and their fields to be read, and channels of those being read, with their deadlines
        self._unread: deque[tuple[int, int]] = deque()
        self._fields: dict[int, tuple[ctypes.c_void_p, float]] = {}
        # the library calls these functions: they must not be collected as garbage
        self._on_connection = _OnConnection(self._connection)
        self._on_field = _OnConnection(self._field_connection)
        self._on_text = _OnEvent(self._field)
        self._on_graphic = _OnEvent(self._graphic)
        self._on_text_event = _OnEvent(self._array_event if kind.is_array else self._text_event)
        self._events = _core.Monitors(_ARRAY)
        self._on_number = ctypes.cast(_core.Monitors.callback(), _OnEvent)
        self._ca = _functions(get_lib("ca"))
        # without preemptive callbacks: they are called in ca_pend_event
        if self._ca.ca_context_create(0) != _NORMAL:
            raise SourceError("EPICS's libca does not start")

    def add(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            channel = ctypes.c_void_p()
            self._wanted[each.number] = each
            status = self._ca.ca_create_channel(
                each.address.encode(), self._on_connection, each.number, 0, ctypes.byref(channel)
            )
            # a signal with an impossible name stays not found
            if status == _NORMAL:
                self._channels[each.number] = channel
        self._ca.ca_flush_io()

    def remove(self, number: int) -> None:
        self._wanted.pop(number, None)
        self._monitors.pop(number, None)
        if (channel := self._channels.pop(number, None)) is not None:
            self._ca.ca_clear_channel(channel)
            self._ca.ca_flush_io()

    def wait(self, seconds: float) -> None:
        self._read_fields()
        # 0 would wait for ever
        self._ca.ca_pend_event(max(seconds, 1e-3))
        self._receive_numbers()

    def close(self) -> None:
        self._ca.ca_context_destroy()

    def _receive_numbers(self) -> None:
        for event in self._events.take():
            self._receive(Event._make(event))

    def _connection(self, arguments: _Connection) -> None:
        number = self._ca.ca_puser(arguments.channel)
        wanted = self._wanted.get(number)
        if wanted is None:
            return
        if arguments.operation != _UP:
            self._receive_numbers()
            self._receive(Event(number, None))
            return
        self._unread += ((number, _RECORD_TYPE), (number, _DESCRIPTION))
        field = self._ca.ca_field_type(arguments.channel)
        is_long = self._is_text and field == _CHARACTERS
        requested = field if is_long or not self._is_text else _TEXT
        count = self._ca.ca_element_count(arguments.channel)
        known = self._monitors.get(number)
        if known is not None:
            if known[0] == requested:
                # the library renews the subscription
                return
            for subscription in known[1]:
                self._ca.ca_clear_subscription(subscription)
        mask = _LOG if (wanted.deadband or self._deadband) == "ADEL" else _VALUE
        wanted_count = min(count, _MOST_CHARACTERS) if is_long else min(count, 2)
        if self._is_array:
            # 0: as many points as each event has
            wanted_count = 0
        is_number = not self._is_text and not self._is_array and requested != _TEXT
        callback = (
            (self._on_number, self._events.subscriber(number)) if is_number else (self._on_text_event, number)
        )
        wanted_events = [(_TIME + requested, wanted_count, mask | _ALARM, *callback)]
        if not self._is_text and field != _TEXT:
            # the library sends one at each connection
            graphic = _GR_ENUM if field == _ENUM else _GR_DOUBLE
            wanted_events.append((graphic, 1, _PROPERTY, self._on_graphic, number))
        subscriptions = []
        for kind, points, events, on_event, user in wanted_events:
            subscriptions.append(subscription := ctypes.c_void_p())
            self._ca.ca_create_subscription(
                kind, points, arguments.channel, events, on_event, user, ctypes.byref(subscription)
            )
        self._monitors[number] = requested, subscriptions
        self._ca.ca_flush_io()

    def _read_fields(self) -> None:
        """Closes the channels of fields that were read, or not found, and opens others."""
        now = time.monotonic()
        for key in [key for key, (_, end) in self._fields.items() if end <= now]:
            self._ca.ca_clear_channel(self._fields.pop(key)[0])
        while self._unread and len(self._fields) < _AT_ONCE:
            number, place = self._unread.popleft()
            key = number * len(_FIELDS) + place
            if (wanted := self._wanted.get(number)) is None or key in self._fields:
                continue
            channel = ctypes.c_void_p()
            name = f"{wanted.address.partition('.')[0]}.{_FIELDS[place][0]}".encode()
            status = self._ca.ca_create_channel(name, self._on_field, key, 0, ctypes.byref(channel))
            if status == _NORMAL:
                self._fields[key] = channel, now + _PATIENCE

    def _field_connection(self, arguments: _Connection) -> None:
        key = self._ca.ca_puser(arguments.channel)
        if arguments.operation == _UP:
            self._ca.ca_array_get_callback(_TEXT, 1, arguments.channel, self._on_text, key)
            self._ca.ca_flush_io()

    def _field(self, arguments: _Monitor) -> None:
        number, place = divmod(arguments.user, len(_FIELDS))
        if arguments.status == _NORMAL and arguments.value:
            text = ctypes.string_at(arguments.value).decode(errors="replace")
            self._describe(number, {_FIELDS[place][1]: text})
        if (known := self._fields.get(arguments.user)) is not None:
            self._fields[arguments.user] = known[0], 0.0

    def _graphic(self, arguments: _Monitor) -> None:
        if arguments.status != _NORMAL or not arguments.value:
            return
        if arguments.kind == _GR_ENUM:
            count, names = _NAMES.unpack(ctypes.string_at(arguments.value, _NAMES.size))
            texts = [_text(names[place : place + _NAME]) for place in range(0, count * _NAME, _NAME)]
            self._describe(arguments.user, {"states": states_text(texts)})
            return
        content = ctypes.string_at(arguments.value, _GRAPHIC.size)
        decimals, unit, _, _, hihi, high, low, lolo = _GRAPHIC.unpack(content)
        found = (
            {"decimals": decimal_places(decimals)}
            | limit_properties(low, high)
            | limit_properties(lolo, hihi, "alarm")
        )
        if len(text := _text(unit)) < len(unit) - 1:
            found["unit"] = text
        else:
            # it has no room for a longer unit
            self._unread.append((arguments.user, _UNIT))
        self._describe(arguments.user, found)

    def _text_event(self, arguments: _Monitor) -> None:
        self._receive_numbers()
        if arguments.status != _NORMAL or not arguments.value:
            self._receive(Event(arguments.user, None))
            return
        count = arguments.count
        is_long = arguments.kind == _TIME + _CHARACTERS
        begin, end = (_CHARACTERS_AT, _CHARACTERS_AT + count) if is_long else (_TEXT_AT, _TEXT_END)
        content = ctypes.string_at(arguments.value, end)
        status, severity, seconds, nanoseconds = _HEAD.unpack_from(content)
        value = _text(content[begin:]) if is_long or count == 1 else _ARRAY
        moment = (seconds + _EPOCH) * 1_000_000_000 + nanoseconds
        self._receive(Event(arguments.user, moment, value, severity, status))

    def _array_event(self, arguments: _Monitor) -> None:
        if arguments.status != _NORMAL or not arguments.value:
            self._receive(Event(arguments.user, None))
            return
        # writers of single values do without it
        import numpy as np

        place, element = _POINTS.get(arguments.kind - _TIME, (_TEXT_AT, "S40"))
        points = np.dtype(element)
        content = ctypes.string_at(arguments.value, place + arguments.count * points.itemsize)
        status, severity, seconds, nanoseconds = _HEAD.unpack_from(content)
        value = np.frombuffer(content, points, offset=place)
        # texts are not points
        sent: Any = value.tolist() if points.kind == "S" else value
        moment = (seconds + _EPOCH) * 1_000_000_000 + nanoseconds
        self._receive(Event(arguments.user, moment, sent, severity, status))


def _text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode(errors="replace")


def _functions(path: str) -> Any:
    ca = ctypes.CDLL(path)
    pointer, number, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_long
    for name, result, arguments in (
        ("ca_context_create", number, [number]),
        ("ca_context_destroy", None, []),
        ("ca_create_channel", number, [ctypes.c_char_p, _OnConnection, pointer, ctypes.c_uint, pointer]),
        ("ca_clear_channel", number, [pointer]),
        ("ca_puser", pointer, [pointer]),
        ("ca_field_type", ctypes.c_short, [pointer]),
        ("ca_element_count", ctypes.c_ulong, [pointer]),
        ("ca_create_subscription", number, [long, ctypes.c_ulong, pointer, long, _OnEvent, pointer, pointer]),
        ("ca_clear_subscription", number, [pointer]),
        ("ca_array_get_callback", number, [long, ctypes.c_ulong, pointer, _OnEvent, pointer]),
        ("ca_flush_io", number, []),
        ("ca_pend_event", number, [ctypes.c_double]),
    ):
        function = getattr(ca, name)
        function.restype, function.argtypes = result, arguments
    return ca
