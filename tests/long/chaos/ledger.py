"""The acknowledged rows of a writer, in a file of the test."""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct("<iqdq")
_LONG = 0.5
"""minimum seconds of a wait that is explained"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A row as it is sent: `time` in microseconds since 1970."""

    seq_no: int
    time: int
    level: float
    number: int

    @property
    def moment(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.time)

    @classmethod
    def of(cls, seq_no: int, moment: datetime, level: float, number: int) -> "Row":
        return cls(seq_no, microseconds(moment), level, number)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass
class Ledger:
    """The acknowledged rows of a table in order, and the wait for each."""

    file: Path
    waits: list[tuple[float, float]] = field(default_factory=list)
    """begin and end of each call, of time.monotonic"""
    answers: dict[float, list[tuple[float, str]]] = field(default_factory=dict)
    """for each long wait, by its begin: the answers instead of an acknowledgement, with their times"""

    def __post_init__(self) -> None:
        self._stream = self.file.open("ab", buffering=0)

    def acknowledge(self, row: Row, begun: float, answers: list[tuple[float, str]]) -> None:
        end = time.monotonic()
        self.waits.append((begun, end))
        if end - begun > _LONG:
            self.answers[begun] = answers
        self._stream.write(_RECORD.pack(*row))

    def rows(self) -> Iterator[Row]:
        for record in _RECORD.iter_unpack(self.file.read_bytes()):
            yield Row(*record)

    def close(self) -> None:
        self._stream.close()
