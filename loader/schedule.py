"""The fixed instants of a cycle."""

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringlog.loader.statistics import Statistics

SECOND = 1_000_000


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Schedule:
    """The instants phase + k * cycle of the wall clock, in microseconds: delays do not accumulate."""

    cycle: int
    phase: int

    @classmethod
    def of(cls, name: str, cycle: float) -> "Schedule":
        """A cycle in seconds; the phase is derived from the name, which spreads the tables of a facility."""
        length = max(1, round(cycle * SECOND))
        return cls(length, zlib.crc32(name.encode()) * length >> 32)

    def after(self, moment: int, previous: int | None = None) -> int:
        """The first instant later than `moment`, but not `previous` again if its timer fired early."""
        due = (moment - self.phase) // self.cycle * self.cycle + self.phase + self.cycle
        return due + self.cycle if due == previous else due

    def missed(self, previous: int, due: int) -> int:
        """The number of instants between two of them; 0 when the clock was set back."""
        return max(0, (due - previous) // self.cycle - 1)

    def instants(self, wait: Callable[[float], object], statistics: Statistics) -> Iterator[int]:
        """Yields each instant when it is due, for ever; instants that have passed meanwhile are counted as
        missed.

        `wait` sleeps for so many seconds. The wait is computed from one reading of the clock: setting it back
        afterwards does not delay the next instant.
        """
        previous: int | None = None
        while True:
            moment = now()
            due = self.after(moment, previous)
            if previous is not None:
                statistics.missed += self.missed(previous, due)
            wait((due - moment) / SECOND)
            yield due
            previous = due
