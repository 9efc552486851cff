"""How processes learn that they should end: a pipe whose writing end only their supervisor holds."""

import os
import select
import time
from typing import ClassVar


class Released(Exception):
    """The supervisor let go, or is dead: whoever waits should end."""


class Leash:
    """Waits of a process that end at once when its supervisor releases it or dies, however it dies."""

    # The ends that this process holds as a supervisor: a forked process must give up its copies of all.
    _held: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self._end, self._supervisors_end = os.pipe()
        self._held.add(self._supervisors_end)

    def wear(self) -> None:
        """For a forked process, before it waits."""
        for end in self._held:
            os.close(end)
        self._held.clear()

    def release(self) -> None:
        """For the supervisor: ends all waits."""
        self._held.remove(self._supervisors_end)
        os.close(self._supervisors_end)

    def discard(self) -> None:
        """For the supervisor, when all processes have ended."""
        os.close(self._end)

    def sleep(self, seconds: float) -> None:
        """Raises Released when that happens before the time is over, or happened before."""
        if select.select([self._end], [], [], max(0.0, seconds))[0]:
            raise Released

    def wait(self, moment: int) -> None:
        """Sleeps until `moment`, in microseconds since 1970."""
        self.sleep((moment - time.time_ns() // 1000) / 1e6)
