"""The signal that ends processes: a pipe whose writing end only their supervisor holds."""

import copy
import math
import os
import select
from typing import ClassVar

from ringlog.clients.reconnecting import Released


class StopSignal:
    """Waits of a process that end at once when its supervisor sets the stop or dies in any way."""

    # The ends that this process holds as a supervisor: a forked process must close its copies.
    _held: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self._end, self._supervisors_end = os.pipe()
        self._held.add(self._supervisors_end)
        self._own_end: int | None = None

    def watch(self) -> None:
        """For a forked process, before it waits."""
        for end in self._held:
            os.close(end)
        self._held.clear()
        self._own_end = os.eventfd(0, os.EFD_CLOEXEC)

    def for_thread(self) -> "StopSignal":
        """A copy for one of several threads of a process: `set_here` ends the waits of this thread alone."""
        own = copy.copy(self)
        own._own_end = os.eventfd(0, os.EFD_CLOEXEC)
        return own

    def set_here(self) -> None:
        """For a thread of a process that watches it: ends this process's waits as if it were released."""
        assert self._own_end is not None
        os.eventfd_write(self._own_end, 1)

    def release(self) -> None:
        """For the supervisor: ends all waits."""
        self._held.remove(self._supervisors_end)
        os.close(self._supervisors_end)

    def discard(self) -> None:
        """For the supervisor, when all processes have ended."""
        os.close(self._end)

    def sleep(self, seconds: float, other: int | None = None) -> bool:
        """Raises Released if the stop is set before the time is over, or was set before. Returns true at once
        if the descriptor `other` can be read."""
        ends = [end for end in (self._end, self._own_end) if end is not None]
        waiting = select.poll()
        for end in ends if other is None else [*ends, other]:
            waiting.register(end, select.POLLIN)
        # rounded up: waking early would mean waking twice
        found = [end for end, _ in waiting.poll(math.ceil(max(0.0, seconds) * 1000))]
        if any(end in found for end in ends):
            raise Released
        return bool(found)
