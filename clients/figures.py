"""The figures that a process records about its calls: the interface for the parts that make calls."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


class State(IntEnum):
    """The state of a writer process."""

    STARTING = 0
    RUNNING = 1
    RECONNECTING = 2
    HELD = 3
    DEAD = 4
    DONE = 5
    FAILED = 6
    REFUSED = 7
    """another process writes the table"""


class Figures(Protocol):
    """Counts from the process's start; `oldest` is in microseconds since 1970, 0 if no row waits."""

    state: int
    message: str
    seq_no: int
    acknowledged: int
    refused: int
    repeated: int
    reconnected: int
    late: int
    spooled: int
    oldest: int
    thinned: int
    bytes: int
    batches: int
    last_latency: float

    def answered(self, latency: float, rows: int = 1) -> None:
        """Counts a call that succeeded after `latency` seconds, with so many rows."""
        ...


@dataclass
class Counts:
    """Figures in this process's own memory."""

    state: int = State.STARTING
    message: str = ""
    """the latest trouble"""
    seq_no: int = 0
    acknowledged: int = 0
    refused: int = 0
    repeated: int = 0
    reconnected: int = 0
    late: int = 0
    spooled: int = 0
    oldest: int = 0
    thinned: int = 0
    bytes: int = 0
    batches: int = 0
    last_latency: float = 0.0

    def answered(self, latency: float, rows: int = 1) -> None:
        self.acknowledged += rows
        self.last_latency = latency
