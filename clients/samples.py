"""Samples of many signals, as a spool keeps them and as put_<table>_batch takes them."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ringlog.clients.moments import HOUR
from ringlog.clients.procedure import Argument
from ringlog.clients.readings import Reading
from ringlog.clients.spool import Shares
from ringlog.schema.column_type import ColumnType

_HOUR = HOUR * 1000  # in nanoseconds


@dataclass
class Samples:
    """Columns with an element for each sample: number of its signal, time in nanoseconds since 1970, value,
    severity and status."""

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

    def part(self, of: slice) -> "Samples":
        """Some of them."""
        return Samples(
            self.signals[of], self.times[of], self.values[of], self.severities[of], self.statuses[of]
        )

    def stored(self, kind: ColumnType) -> tuple[Reading, ...]:
        """The readings of a spool's row; values are packed if all are numbers of the type."""
        packs = kind.is_fixed and None not in self.values
        values = array(kind.array, self.values).tobytes() if packs else json.dumps(self.values)
        others = (self.signals, self.times, self.severities, self.statuses)
        signals, times, severities, statuses = (each.tobytes() for each in others)
        return signals, times, values, severities, statuses

    @classmethod
    def joined(cls, rows: Iterable[Sequence[Reading]], kind: ColumnType) -> Self:
        """The samples of rows of a spool."""
        found = cls()
        for row in rows:
            signals, times, values, severities, statuses = row
            found.signals.frombytes(_packed(signals))
            found.times.frombytes(_packed(times))
            found.values += (
                array(kind.array, values) if isinstance(values, bytes) else json.loads(str(values))
            )
            found.severities.frombytes(_packed(severities))
            found.statuses.frombytes(_packed(statuses))
        return found

    def sent(self, kind: ColumnType, *, swaps: bool) -> dict[str, Argument]:
        """The arguments of put_<table>_batch; `swaps`: the server takes packed numbers in the byte order that
        is not this machine's."""
        nulls = array("i", [place for place, value in enumerate(self.values, 1) if value is None])
        values = self.values
        if nulls:
            values = [("" if kind.is_text else 0) if value is None else value for value in values]
        arrays = {"signals": self.signals, "times": self.times} | ({"nulls": nulls} if nulls else {})
        for name, alarms in (("severities", self.severities), ("statuses", self.statuses)):
            if any(alarms):
                arrays[name] = alarms
        if kind.is_fixed:
            arrays["samples"] = array(kind.array, values)
        if swaps:
            arrays = {name: array(each.typecode, each) for name, each in arrays.items()}
            for each in arrays.values():
                each.byteswap()
        sent: dict[str, Argument] = {name: each.tobytes() for name, each in arrays.items()}
        return sent if kind.is_fixed else sent | {"samples": "{" + ",".join(map(_quoted, values)) + "}"}


def shares(time: int, readings: Sequence[Reading]) -> Shares:
    """The ledger's count of a spool's row: its samples, by the hours of their own times."""
    times: array[int] = array("q")
    times.frombytes(_packed(readings[1]))
    first, last = min(times) // _HOUR, max(times) // _HOUR
    if first == last:
        return [(first * HOUR, len(times))]
    return [(hour * HOUR, number) for hour, number in Counter(each // _HOUR for each in times).items()]


def _packed(reading: Reading) -> bytes:
    """The bytes of a reading that is an array."""
    assert isinstance(reading, bytes)
    return reading


def _quoted(text: str) -> str:
    """An element of an array of texts in PostgreSQL's form."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
