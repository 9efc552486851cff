"""Samples of many signals, as a spool keeps them and as put_<table>_batch takes them."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ringlog.clients.procedure import Argument
from ringlog.clients.readings import Content, Reading, restored
from ringlog.clients.spool.books import Shares
from ringlog.schema.column_type import ColumnType
from ringlog.schema.moments import HOUR

_HOUR = HOUR * 1000  # in nanoseconds
_NO_READING = -1
"""length of a waveform that is no reading, in a spool"""


@dataclass
class Samples:
    """Columns with an element for each sample: number of its signal, time in nanoseconds since 1970, value (a
    packed waveform is bytes), severity and status."""

    signals: "array[int]" = field(default_factory=lambda: array("i"))
    times: "array[int]" = field(default_factory=lambda: array("q"))
    values: list[Any] = field(default_factory=list)
    severities: "array[int]" = field(default_factory=lambda: array("h"))
    statuses: "array[int]" = field(default_factory=lambda: array("h"))

    def __len__(self) -> int:
        return len(self.values)

    def add(self, signal: int, time: int, value: Reading, severity: int, status: int) -> None:
        self.signals.append(signal)
        self.times.append(time)
        self.values.append(value)
        self.severities.append(severity)
        self.statuses.append(status)

    def parts(self, size: int) -> Iterator["Samples"]:
        """Parts whose waveforms have at most so many bytes, or of a single one."""
        begin = bytes_of = 0
        for index, value in enumerate(self.values):
            length = len(value) if isinstance(value, bytes) else 0
            if index > begin and bytes_of + length > size:
                yield self.part(slice(begin, index))
                begin, bytes_of = index, 0
            bytes_of += length
        yield self.part(slice(begin, None))

    def part(self, of: slice) -> "Samples":
        """Some of them."""
        return Samples(
            self.signals[of], self.times[of], self.values[of], self.severities[of], self.statuses[of]
        )

    def stored(self, kind: ColumnType) -> tuple[Reading, ...]:
        """The readings of a spool's row; values are packed if all are numbers of the type. Of waveforms their
        lengths follow."""
        values: Reading
        if kind.is_array:
            values = b"".join(each for each in self.values if each is not None)
        elif kind.is_fixed and None not in self.values:
            values = array(kind.array, self.values).tobytes()
        else:
            values = json.dumps(self.values)
        others = (self.signals, self.times, self.severities, self.statuses)
        signals, times, severities, statuses = (each.tobytes() for each in others)
        found = signals, times, values, severities, statuses
        if not kind.is_array:
            return found
        lengths = [_NO_READING if each is None else len(each) for each in self.values]
        return *found, array("i", lengths).tobytes()

    @classmethod
    def joined(cls, rows: Iterable[Sequence[Reading]], kind: ColumnType) -> Self:
        """The samples of rows of a spool."""
        found = cls()
        for row in rows:
            signals, times, values, severities, statuses, *lengths = row
            found.signals.frombytes(_packed(signals))
            found.times.frombytes(_packed(times))
            if lengths:
                found.values += _cut(_packed(values), lengths[0])
            elif isinstance(values, bytes):
                found.values += array(kind.array, values)
            else:
                found.values += json.loads(str(values))
            found.severities.frombytes(_packed(severities))
            found.statuses.frombytes(_packed(statuses))
        return found

    def sent(self, kind: ColumnType, *, swaps: bool) -> dict[str, Argument]:
        """The arguments of put_<table>_batch; `swaps`: the server takes packed numbers in the byte order that
        is not this machine's."""
        nulls = array("i", [number for number, value in enumerate(self.values, 1) if value is None])
        values = self.values
        if nulls and not kind.is_array:
            values = [("" if kind.is_text else 0) if value is None else value for value in values]
        arrays = {"signals": self.signals, "times": self.times} | ({"nulls": nulls} if nulls else {})
        for name, alarms in (("severities", self.severities), ("statuses", self.statuses)):
            if any(alarms):
                arrays[name] = alarms
        if kind.is_fixed:
            arrays["samples"] = array(kind.array, values)
        elif kind.is_array:
            arrays["samples"] = points = array(kind.array)
            points.frombytes(b"".join(each for each in values if each is not None))
            arrays["lengths"] = array("i", [len(each or b"") // points.itemsize for each in values])
        if swaps:
            arrays = {name: array(each.typecode, each) for name, each in arrays.items()}
            for each in arrays.values():
                each.byteswap()
        # the drivers send empty binary data as NULL
        sent: dict[str, Argument] = {name: each.tobytes() or "{}" for name, each in arrays.items()}
        return sent if "samples" in sent else sent | {"samples": "{" + ",".join(map(_quoted, values)) + "}"}


def shares(time: int, content: Content) -> Shares:
    """The ledger's count of a spool's row: its samples, by the hours of their own times."""
    times: array[int] = array("q")
    times.frombytes(_packed(restored(content)[1]))
    first, last = min(times) // _HOUR, max(times) // _HOUR
    if first == last:
        return [(first * HOUR, len(times))]
    return [(hour * HOUR, number) for hour, number in Counter(each // _HOUR for each in times).items()]


def _cut(points: bytes, lengths: Reading) -> Iterator[bytes | None]:
    """The waveforms of a row of a spool."""
    begin = 0
    for length in array("i", _packed(lengths)):
        yield None if length == _NO_READING else points[begin : begin + length]
        begin += max(0, length)


def _packed(reading: Reading) -> bytes:
    assert isinstance(reading, bytes)
    return reading


def _quoted(text: str) -> str:
    """An element of an array of texts in PostgreSQL's form."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
