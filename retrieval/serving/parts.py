"""Parts of answers, as they are produced."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Part: TypeAlias = bytes | memoryview
"""of an answer; the bytes of a memoryview do not change"""
_LARGE = 1 << 16  # bytes from which a part is passed on without a copy


def gathered(parts: Iterator[Part]) -> Iterator[Part]:
    """Joins small parts into parts of at least 64 KiB; large ones stay separate."""
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
    """A file whose content can be taken while it is written; `kept` converts each written part."""

    closed = False

    def __init__(self, kept: Callable[[Any], Part]) -> None:
        self._kept = kept
        self._parts: list[Part] = []

    def write(self, part: Any) -> int:
        self._parts.append(self._kept(part))
        return len(part)

    def drained(self) -> list[Part]:
        """The bytes written since the last call."""
        parts, self._parts = self._parts, []
        return parts

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True
