"""The types of readings, as sources return and spools store them."""

import array
import json
import math
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

from ringlog.schema.facility import Column

Reading: TypeAlias = bool | int | float | str | bytes | None
"""A column's value in its type of the facility file; a waveform is packed; None: no reading."""

Content: TypeAlias = str | bytes
"""A row's readings in the form of a spool: JSON, with waveforms followed by their unchanged bytes."""

_LENGTH = struct.Struct("<I")


def waveform(points: Any, column: Column) -> bytes | str:
    """A waveform as a reading: packed, or for texts in PostgreSQL's form, {"ready","in use"}.

    Raises TypeError or ValueError for points that its column cannot hold.
    """
    return packed(points, column) if column.is_packed else _of_texts(points, column)


def packed(points: Any, column: Column) -> bytes:
    """A waveform's points in its column's type, one after another: little-endian, a bit as a byte.

    `points` is a numpy array of any shape, row by row, a sequence of numbers, or bytes packed already, which
    are little-endian too. Raises TypeError or ValueError for points of another type, out of range, or too
    many.
    """
    code = column.type.array
    if isinstance(points, bytes):
        elements = points
        if len(points) % array.array(code).itemsize:
            raise ValueError(f"{len(points)} bytes are not a whole number of points of {column.type}")
    elif hasattr(points, "astype"):
        elements = _of_numpy(points.ravel(), code, column)
    elif isinstance(points, Sequence) and not isinstance(points, str):
        elements = _of_sequence(points, code, column)
    else:
        raise TypeError(f"{type(points).__name__} is not a waveform")
    if code == "B" and elements.translate(None, b"\0\1"):
        raise ValueError("a point of bit[] is 0 or 1")
    _check_count(len(elements) // array.array(code).itemsize, column)
    return elements


def swapped(elements: bytes, column: Column) -> bytes:
    """A packed waveform in the other byte order."""
    turned = array.array(column.type.array, elements)
    turned.byteswap()
    return turned.tobytes()


def array_text(elements: bytes, column: Column) -> str:
    """A packed waveform in PostgreSQL's text form of an array."""
    return "{" + ",".join(map(str, array.array(column.type.array, elements))) + "}"


def _of_texts(points: Any, column: Column) -> str:
    if hasattr(points, "tolist"):
        points = points.tolist()
    if not isinstance(points, Sequence) or isinstance(points, str | bytes):
        raise TypeError(f"{type(points).__name__} is not a waveform of texts")
    longest = column.type.length or 0
    for index, point in enumerate(points):
        if not isinstance(point, str):
            raise TypeError(f"point {index} is {point!r}, which is not a text")
        if len(point) > longest or "\0" in point:
            raise ValueError(f"point {index}, '{point}', is longer than varchar({longest}) or contains a NUL")
    _check_count(len(points), column)
    quoted = (point.replace("\\", "\\\\").replace('"', '\\"') for point in points)
    return "{" + ",".join(f'"{point}"' for point in quoted) + "}"


def _check_count(count: int, column: Column) -> None:
    if column.points is not None and count > column.points:
        raise ValueError(f"{count} points are more than the {column.points} of the facility file")


def _of_numpy(points: Any, code: str, column: Column) -> bytes:
    converted = points.astype("<f4" if code == "f" else "<f8" if code == "d" else code, copy=False)
    if converted.dtype == points.dtype:
        return bytes(converted.tobytes())
    kept = converted == points
    if code in "fd":
        # a float is rounded; only one that becomes infinite is lost
        kept |= (points != points) | (abs(converted) < math.inf)
    if not kept.all():
        raise ValueError(
            f"point {kept.argmin()} is {points[kept.argmin()]}, which is not of type {column.type.element}"
        )
    return bytes(converted.tobytes())


def _of_sequence(points: Sequence[Any], code: str, column: Column) -> bytes:
    elements = array.array(code)
    kind = column.type.element
    for index, point in enumerate(points):
        try:
            elements.append(point if code in "fd" else _whole(point))
        except OverflowError:
            raise ValueError(f"point {index} is {point}, which is not of type {kind}") from None
        if code == "f" and math.isinf(elements[-1]) and not math.isinf(point):
            raise ValueError(f"point {index} is {point}, which is not of type {kind}")
    return elements.tobytes()


def _whole(point: Any) -> int:
    number = int(point)
    if number != point:
        raise ValueError(f"{point} is not a whole number")
    return number


def stored(readings: Sequence[Reading]) -> Content:
    """A row's readings in the form of a spool."""
    waveforms = [reading for reading in readings if isinstance(reading, bytes)]
    shown = [{"bytes": len(reading)} if isinstance(reading, bytes) else reading for reading in readings]
    return with_waveforms(json.dumps(shown, ensure_ascii=False, separators=(",", ":")), waveforms)


def with_waveforms(text: str, waveforms: Sequence[bytes]) -> Content:
    """A row's content from its JSON, which has {"bytes": length} for each of these waveforms."""
    if not waveforms:
        return text
    encoded = text.encode()
    return b"".join([_LENGTH.pack(len(encoded)), encoded, *waveforms])


def text_of(content: Content) -> Content:
    """The JSON of the result of `stored`."""
    if isinstance(content, str):
        return content
    (length,) = _LENGTH.unpack_from(content)
    return content[_LENGTH.size : _LENGTH.size + length]


def restored(content: Content) -> tuple[Reading, ...]:
    """The readings from the result of `stored`."""
    text = text_of(content)
    if isinstance(content, str):
        return tuple(json.loads(text))
    offset = _LENGTH.size + len(text)
    readings: list[Reading] = []
    for shown in json.loads(text):
        if isinstance(shown, dict):
            readings.append(content[offset : offset + shown["bytes"]])
            offset += shown["bytes"]
        else:
            readings.append(shown)
    return tuple(readings)
