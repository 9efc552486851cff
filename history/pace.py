"""The limits of reading an old server: its rate, and the hours of the day."""

import re
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta


class Pace:
    """Limits that all readers of a source share."""

    def __init__(
        self,
        rate: float = 0.0,
        hours: tuple[int, int] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`rate`: the most values a second, 0: no limit. `hours`: from the first to the second full hour of
        the local time, over midnight if that is less."""
        self.rate = rate
        self._hours = hours
        self._now = now
        self._lock = threading.Lock()
        self._due = 0.0
        """when the values that have passed are allowed, by the monotonic clock"""

    @property
    def has_hours(self) -> bool:
        return self._hours is not None

    def passed(self, values: int, ended: threading.Event) -> None:
        """Waits as long as so many values take at the rate."""
        if not self.rate:
            return
        with self._lock:
            self._due = max(self._due, time.monotonic()) + values / self.rate
            due = self._due
        ended.wait(max(0.0, due - time.monotonic()))

    def admit(self, ended: threading.Event) -> None:
        """Waits for the hours."""
        while (left := self.closed()) and not ended.wait(min(left.total_seconds(), 60)):
            pass

    def closed(self) -> timedelta:
        """The time until the hours begin; 0: they are now."""
        if self._hours is None:
            return timedelta()
        begin, end = self._hours
        now = self._now()
        since = (now - now.replace(hour=begin, minute=0, second=0, microsecond=0)) % timedelta(days=1)
        is_open = since < timedelta(hours=(end - begin) % 24)
        return timedelta() if is_open else timedelta(days=1) - since


def hours_of(text: str) -> tuple[int, int] | None:
    """Hours as `22-06`; None of an empty text. Raises ValueError."""
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,2})-(\d{1,2})", text)
    begin, end = (int(found[1]), int(found[2]) % 24) if found else (24, 24)
    if begin > 23 or begin == end or (found and int(found[2]) > 24):
        raise ValueError(f"{text!r} is not a range of hours: write it as 22-06")
    return begin, end
