"""Checksums of rows, by which the rows of two servers are compared."""

import hashlib
import struct
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any


class Digest:
    """A checksum of rows in any order: the sum of the digests of each, and their number."""

    def __init__(self, singles: Collection[int] = ()) -> None:
        """`singles` are the places of columns of single precision, which one driver gives in double."""
        self._singles = singles
        self._sum = 0
        self._rows = 0

    def add(self, row: Sequence[Any]) -> None:
        values = [_plain(value, place in self._singles) for place, value in enumerate(row)]
        self._sum += int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:16])
        self._rows += 1

    @property
    def rows(self) -> int:
        return self._rows

    def text(self) -> str:
        return f"{self._rows}:{self._sum % 2**128:032x}"


def _plain(value: Any, is_single: bool) -> Any:
    """The same for the same value, whichever driver gives it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        if value != value:
            return "nan"
        return struct.unpack("f", struct.pack("f", value))[0] if is_single else value
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, memoryview):
        return bytes(value)
    return value.isoformat() if isinstance(value, date | time) else value
