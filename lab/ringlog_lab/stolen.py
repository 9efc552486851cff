"""The processor time that the host of a virtual machine gives to others while a load runs."""

import threading
import time
from types import TracebackType
from typing import Self

import psutil


class Stolen:
    """Counts, second by second, the time for which the machine's host gave a processor with work to others.

    A processor that is taken away stops with all its locks, also PostgreSQL's: no server on the machine can
    answer meanwhile. `seconds` has one figure for each whole second so far, of all processors together, in
    seconds (`steal` in proc(5), /proc/stat).
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count, name="stolen", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _count(self) -> None:
        due, before = time.monotonic() + 1, _stolen()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            now = _stolen()
            self.seconds.append(round(now - before, 2))
            due, before = due + 1, now


def _stolen() -> float:
    """Since the start of the machine. 0 if the host does not report it."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))
