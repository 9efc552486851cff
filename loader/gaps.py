"""Detects gaps in the times of a table's rows, and their causes."""

import time

from ringlog.loader.schedule import SECOND, now
from ringlog.loader.sources import Note

# Seconds that the wall clock may differ from the monotonic one before it counts as changed.
_CLOCK = 1.0
# Seconds within which readings of both clocks count as simultaneous.
_SAME = 0.1


class Gaps:
    """Watches the times of a table's rows, in microseconds since 1970.

    `longest`: the longest time between rows, in seconds; None when only changes give rows. At live rows the
    wall clock is also compared with the monotonic one, which distinguishes a clock that was set from a pause.
    """

    def __init__(self, longest: float | None, live: bool, before: int | None, note: Note) -> None:
        self._longest = longest
        self._live = live
        self._previous = before
        self._seen: tuple[int, float] | None = None
        # further rows that may have times from before or after a change of the clock
        self._astride = 0
        self._note = note

    def expect(self, longest: float | None) -> None:
        """Sets the longest time between rows from now on."""
        self._longest = longest

    def see(self, moment: int) -> None:
        """Checks the next row's time."""
        previous, self._previous = self._previous, moment
        passed = self._passed() if self._live else None
        if previous is None:
            return
        elapsed = (moment - previous) / SECOND
        if self._astride and passed is not None:
            self._astride -= 1
            elapsed = passed
        if self._longest is not None and elapsed > 1.5 * self._longest:
            message = "no writer was running" if passed is None and self._live else "the source gave no rows"
            missing = round(elapsed / self._longest) - 1
            self._note("gap", moment - round(elapsed * SECOND), message, moment, missing)

    def _passed(self) -> float | None:
        """Seconds since the row before, if there was one. Reports a clock that was set meanwhile."""
        before, self._seen = self._seen, _clocks()
        if before is None:
            return None
        wall, seen = self._seen
        passed = seen - before[1]
        unchanged = before[0] + round(passed * SECOND)
        if abs(wall - unchanged) > _CLOCK * SECOND:
            way = "ahead" if wall > unchanged else "back"
            message = f"the clock was set {way} by {abs(wall - unchanged) / SECOND:.1f} s"
            self._note("clock", min(unchanged, wall), message, max(unchanged, wall), None)
            # this row may have a time from before the change, and the next one the first time after it
            self._astride = 2
        return passed


def _clocks() -> tuple[int, float]:
    """The wall clock, in microseconds since 1970, and the monotonic one, in seconds, at the same moment."""
    while True:
        seen = time.monotonic()
        wall = now()
        if time.monotonic() - seen < _SAME:
            return wall, seen
