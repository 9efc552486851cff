"""The progress of a long answer: calls of a function, or a line on a terminal or in a notebook."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int], object]
"""Called with the number of bytes of each part, as tqdm's `update`."""

_QUIET = 1.0
"""seconds without a line: most answers end before"""
_PAUSE = 0.2


class Counted(io.RawIOBase):
    """An open answer that reports the bytes that are read of it."""

    def __init__(self, answer: Any, progress: Progress) -> None:
        self._answer, self._progress = answer, progress

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part: bytes = self._answer.read(size) if size >= 0 else self._answer.read()
        self._progress(len(part))
        return part


@contextmanager
def line() -> Iterator[Progress]:
    """Shows the bytes that have arrived on standard error after the first second, if it is a terminal or a
    notebook; the line is removed at the end."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield lambda size: None
        return
    total, shown, width = 0, time.monotonic() + _QUIET - _PAUSE, 0

    def count(size: int) -> None:
        nonlocal total, shown, width
        total += size
        if time.monotonic() - shown > _PAUSE:
            text = f"ringlog: {total / 1e6:.1f} MB"
            shown, width = time.monotonic(), len(text)
            print(f"\r{text}", end="", file=sys.stderr, flush=True)

    try:
        yield count
    finally:
        if width:
            print(f"\r{' ' * width}\r", end="", file=sys.stderr, flush=True)
