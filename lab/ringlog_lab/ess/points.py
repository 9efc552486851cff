"""Points of waveforms: the first is its frame's number, the others stay the same, as in papers/003."""

import struct
from random import Random

_CODES = {"int": "<i", "double": "<d"}


def points_of(type: str, points: int) -> bytes:
    """The points of every waveform, packed: those of a noisy 16-bit digitiser."""
    dice = Random(points)
    readings = [dice.randrange(-32768, 32768) for _ in range(points)]
    return struct.pack(f"<{points}{_CODES[type][1]}", *readings)


def frame(type: str, rest: bytes, number: int) -> bytes:
    first = struct.pack(_CODES[type], number)
    return first + rest[len(first) :]
