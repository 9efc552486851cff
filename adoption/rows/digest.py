"""Checksums of rows, by which the rows of two servers are compared."""

import hashlib
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any


class Digest:
    """A checksum of rows in any order: the sum of the digests of each, and their number."""

    def __init__(self) -> None:
        self._sum = 0
        self._rows = 0

    def add(self, row: Sequence[Any]) -> None:
        values = [*map(_plain, row)]
        self._sum += int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:16])
        self._rows += 1

    @property
    def rows(self) -> int:
        return self._rows

    def text(self) -> str:
        return f"{self._rows}:{self._sum % 2**128:032x}"


def single(number: float) -> float:
    """The nearest number of single precision."""
    nearest: float = struct.unpack("f", struct.pack("f", number))[0]
    return nearest


def _plain(value: Any) -> Any:
    """The same for the same value, whichever driver gives it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return "nan" if value != value else value
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, memoryview):
        return bytes(value)
    return value.isoformat() if isinstance(value, date | time) else value
