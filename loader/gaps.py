"""Detects gaps in the times of a table's rows, and their causes."""

import time

from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Note

# Seconds that the wall clock may differ from the processor's own before it counts as set.
_CLOCK = 1.0


class Gaps:
    """Watches the times of a table's rows, in microseconds since 1970.

    `longest`: the longest time between rows, in seconds; None when only changes give rows. Live rows are also
    compared with the monotonic clock, which distinguishes a clock that was set from a pause.
    """

    def __init__(self, longest: float | None, live: bool, before: int | None, note: Note) -> None:
        self._longest = longest
        self._live = live
        self._previous = before
        self._seen: float | None = None
        self._note = note

    def expect(self, longest: float | None) -> None:
        """Rows are so far apart at most from now on."""
        self._longest = longest

    def see(self, moment: int) -> None:
        """Looks at the next row's time."""
        seen = time.monotonic()
        previous, self._previous = self._previous, moment
        passed, self._seen = (None if self._seen is None else seen - self._seen), seen
        if previous is None:
            return
        elapsed = (moment - previous) / SECOND
        if self._live and passed is not None and abs(elapsed - passed) > max(_CLOCK, self._longest or 0.0):
            way = "ahead" if elapsed > passed else "back"
            words = f"the clock was set {way} by {abs(elapsed - passed):.1f} s"
            self._note("clock", min(previous, moment), words, max(previous, moment), None)
            elapsed = passed
        if self._longest is not None and elapsed > 1.5 * self._longest:
            words = "no writer was running" if passed is None and self._live else "the source gave no rows"
            missing = round(elapsed / self._longest) - 1
            self._note("gap", moment - round(elapsed * SECOND), words, moment, missing)
