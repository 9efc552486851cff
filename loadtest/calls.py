"""A record of every call of every user, for the measurement and check of a load.

Records are sent as bytes from locust's workers to its master, which appends them to a file.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

RECORD = struct.Struct("<BBHIqI")
_LONGEST = 2**32 - 1


class Kind(IntEnum):
    """The kinds of calls of a user."""

    LOGIN = 0
    WRITE = 1
    READ = 2


class Call(NamedTuple):
    """One call, in the order of RECORD's fields."""

    kind: Kind
    # whether the call succeeded
    answered: bool
    # index of the table in the facility file, from 0
    table: int
    # writer: the ring row; reader: rows read; login: this user's earlier logins
    number: int
    # microseconds since 1970; a written row's own time
    begun: int
    # microseconds
    latency: int


class Calls:
    """Collects the records of one process."""

    def __init__(self) -> None:
        self._records = bytearray()

    def add(self, call: Call) -> None:
        self._records += RECORD.pack(*call[:-1], min(call.latency, _LONGEST))

    def take(self) -> bytes:
        """The records since the last call."""
        records, self._records = self._records, bytearray()
        return bytes(records)
