"""Files of acknowledged rows, for tests that look for these rows in the database."""

import os
import struct
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ringlog.schema.moments import microseconds, moment_of

# seq_no, and the time in microseconds since 1970
_RECORD = struct.Struct("<iq")


class Acknowledgement(NamedTuple):
    """The key of an acknowledged row."""

    seq_no: int
    time: datetime


class AckLog:
    """Appends acknowledgements to a file, each whole or not at all."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, seq_no: int, time: datetime) -> None:
        os.write(self._file, _RECORD.pack(seq_no, microseconds(time)))


def read_acknowledgements(file: Path) -> list[Acknowledgement]:
    """All acknowledgements of a file, in the order of their acknowledgement; none when there is no file."""
    if not file.exists():
        return []
    return [
        Acknowledgement(seq_no, moment_of(time)) for seq_no, time in _RECORD.iter_unpack(file.read_bytes())
    ]
