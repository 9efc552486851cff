"""Parts of answers: bytes as they are made."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Part: TypeAlias = bytes | memoryview
"""of an answer; a memoryview is of bytes that do not change"""
_LARGE = 1 << 16  # bytes of a part that is given on without being copied


def gathered(parts: Iterator[Part]) -> Iterator[Part]:
    """Small parts are joined, up to so many bytes; large ones stay as they are."""
    small: list[Part] = []
    size = 0
    for part in parts:
        if len(part) < _LARGE:
            small.append(part)
            size += len(part)
        if small and (size >= _LARGE or len(part) >= _LARGE):
            yield b"".join(small)
            small, size = [], 0
        if len(part) >= _LARGE:
            yield part
    if small:
        yield b"".join(small)


class Sink:
    """A file whose content is taken as it is written; `kept` is what is kept of each part."""

    closed = False

    def __init__(self, kept: Callable[[Any], Part]) -> None:
        self._kept = kept
        self._parts: list[Part] = []

    def write(self, part: Any) -> int:
        self._parts.append(self._kept(part))
        return len(part)

    def taken(self) -> list[Part]:
        """What was written since the last call."""
        parts, self._parts = self._parts, []
        return parts

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True
