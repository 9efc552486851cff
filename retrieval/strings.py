"""Values of a block as columns of text, and these columns as the bytes of lines.

Python handles no single value: numbers are written by orjson, which is many times as fast as Arrow's own
cast, and its text is cut at the commas; times are composed from tables of digits. A column's texts already
end in their separator, a comma or a line's end, which leaves fewer parts to join.
"""

from collections.abc import Iterable
from functools import cache
from itertools import chain, product, repeat
from typing import TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Texts: TypeAlias = "pa.Array | list[bytes] | str"
"""a text each, long ones in a list, or one for all"""


def joined(*parts: Texts) -> bytes:
    """The texts of each value one after the other, and these after each other."""
    merged: list[Texts] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    if any(isinstance(part, list) for part in merged):
        return b"".join(chain.from_iterable(zip(*map(_each, merged), strict=False)))
    lines = pc.binary_join_element_wise(*merged, "")
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    if not len(lines):
        return b""
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(data)[int(bounds[0]) : int(bounds[-1])])


def _each(texts: Texts) -> Iterable[bytes]:
    if isinstance(texts, str):
        return repeat(texts.encode())
    return texts if isinstance(texts, list) else texts.cast(pa.binary()).to_pylist()


def whole(numbers: NDArray[np.integer], after: str) -> pa.Array:
    """Whole numbers, each with one sign after it."""
    near = _near(numbers, after)
    return _cut(np.ascontiguousarray(numbers), after) if near is None else near


def nanoseconds(numbers: NDArray[np.integer], after: str) -> pa.Array:
    """Nanoseconds of a second, as `whole`: faster where they are whole milliseconds."""
    thousandths = numbers // 1_000_000
    if not (thousandths * 1_000_000 == numbers).all():
        return whole(numbers, after)
    return _milliseconds(after).take(pa.array(thousandths))


def json_values(values: pa.Array, after: str, *, bits: bool = False) -> Texts:
    """Values as JSON has them; what it cannot say is null. Bits are 0 and 1, with `bits` true and false."""
    if pa.types.is_list(values.type):
        return _lists(values, "", "null", after)
    if pa.types.is_string(values.type):
        texts = [orjson.dumps(text).decode() + after for text in values.to_pylist()]
        return pa.array(texts, pa.string())
    if bits and pa.types.is_boolean(values.type):
        return pc.if_else(values, f"true{after}", f"false{after}").fill_null(f"null{after}")
    return _numbers(values, "null", after, json=True)


def csv_values(values: pa.Array, missing: str, after: str) -> Texts:
    """Values as CSV has them (RFC 4180), on one line; `missing` stands for null. Bits are 0 and 1."""
    if pa.types.is_list(values.type):
        return _lists(values, '"', missing, after)
    if pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type):
        texts = [(missing if text is None else _quoted(text)) + after for text in values.to_pylist()]
        return pa.array(texts, pa.string())
    return _numbers(values, missing, after, json=False)


def iso(micros: NDArray[np.int64], after: str) -> pa.Array:
    """Instants (microseconds since 1970) as 2026-11-20T14:00:00.000000Z."""
    seconds = micros // 1_000_000
    below = micros - seconds * 1_000_000
    thousands = below // 1000
    return _fixed(
        len(micros),
        _dates(seconds // 86_400, "%Y-%m-%dT"),
        _clock()[seconds % 86_400],
        _thousand(".", "")[thousands],
        _thousand("", "Z")[below - thousands * 1000],
        after,
    )


def human(seconds: NDArray[np.int64], after: str) -> pa.Array:
    """Instants in the appliance's readable form, as Nov/20/2026 14:00:00 +00:00."""
    clock = _clock()[seconds % 86_400]
    return _fixed(len(seconds), _dates(seconds // 86_400, "%b/%d/%Y "), clock, f" +00:00{after}")


def milliseconds(micros: NDArray[np.int64], after: str) -> list[Texts]:
    """Microseconds as milliseconds, whole where all are."""
    thousands = micros // 1000
    below = micros - thousands * 1000
    if not below.any():
        return [whole(thousands, after)]
    if micros.min() < 0:  # before 1970
        signs = pa.array(np.where(micros < 0, "-", ""), pa.string())
        return [signs, *milliseconds(np.abs(micros), after)]
    return [whole(thousands, "."), _fixed(len(micros), _thousand("", after)[below])]


def one_line(text: str) -> str:
    return " ".join(text.splitlines()) if text.splitlines() != [text] else text


def _numbers(values: pa.Array, missing: str, after: str, *, json: bool) -> pa.Array:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not pa.types.is_floating(values.type):
        text = _cut(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), after)
        return text if not values.null_count else pc.if_else(values.is_valid(), text, f"{missing}{after}")
    numbers = values.to_numpy(zero_copy_only=False)
    text = _cut(np.ascontiguousarray(numbers), after)
    finite = np.isfinite(numbers)
    if finite.all():
        return text
    if json:
        return pc.if_else(pa.array(finite), text, f"{missing}{after}")
    others = np.where(np.isnan(numbers), f"NaN{after}", np.where(numbers > 0, f"inf{after}", f"-inf{after}"))
    text = pc.if_else(pa.array(finite), text, pa.array(others, pa.string()))
    return text if not values.null_count else pc.if_else(values.is_valid(), text, f"{missing}{after}")


def _cut(numbers: NDArray[np.generic], after: str) -> pa.Array:
    """Numbers as orjson writes them; it says null for what is not finite."""
    n = len(numbers)
    if not n:
        return pa.array([], pa.string())
    text = bytearray(orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY))
    letters = np.frombuffer(text, np.uint8)
    commas = np.flatnonzero(letters == ord(","))
    offsets = np.empty(n + 1, np.int32)
    offsets[0], offsets[1:n], offsets[n] = 1, commas + 1, len(text)
    letters[commas] = ord(after)
    letters[-1] = ord(after)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))


def _lists(values: pa.Array, quote: str, missing: str, after: str) -> list[bytes]:
    """Lists as JSON; what is no number in those of numbers is null."""
    if pa.types.is_string(values.type.value_type):
        lists = (texts if texts is None else orjson.dumps(texts).decode() for texts in values.to_pylist())
        shown = (missing if text is None else _quoted(text) if quote else text for text in lists)
        return [(text + after).encode() for text in shown]
    flat = values.flatten()
    if pa.types.is_boolean(flat.type):
        flat = flat.cast(pa.int8())
    numbers = np.ascontiguousarray(flat.to_numpy(zero_copy_only=False))
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths).tolist()
    left, right, none = quote.encode(), (quote + after).encode(), (missing + after).encode()
    texts, start = [], 0
    for end, is_there in zip(ends, values.is_valid().to_pylist(), strict=True):
        if is_there:
            written = orjson.dumps(numbers[start:end], option=orjson.OPT_SERIALIZE_NUMPY)
            texts.append(b"".join((left, written, right)))
        else:
            texts.append(none)
        start = end
    return texts


def _quoted(text: str) -> str:
    text = one_line(text)
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"\t') else text


Letters: TypeAlias = "NDArray[np.generic] | str"
"""texts of one length, an item each, or one for all"""


def _fixed(n: int, *parts: Letters) -> pa.Array:
    """`n` texts of one length, put together."""
    columns = [_items([part])[0] if isinstance(part, str) else part for part in parts if len(part)]
    lines = np.empty(n, [(f"f{number}", column.dtype) for number, column in enumerate(columns)])
    for number, column in enumerate(columns):
        lines[f"f{number}"] = column
    width = lines.dtype.itemsize
    offsets = np.arange(0, (n + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(lines))


def _near(numbers: NDArray[np.integer], after: str) -> pa.Array | None:
    """Numbers of one length that lie near each other, as the seconds of a block do, are looked up. None where
    they are others."""
    if not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0 or high - low > len(numbers) // 4 or len(str(low)) != len(str(high)):
        return None
    texts = _items([f"{number}{after}" for number in range(low, high + 1)])
    return _fixed(len(numbers), texts[numbers - low])


@cache
def _milliseconds(after: str) -> pa.Array:
    """Each of a second, as nanoseconds."""
    return pa.array([f"{number * 1_000_000}{after}" for number in range(1000)], pa.string())


def _dates(days: NDArray[np.int64], form: str) -> Letters:
    if len(days) and days[0] == days[-1]:
        (text,) = pc.strftime(pa.array(days[:1] * 86_400, pa.timestamp("s")), form).to_pylist()
        return str(text)
    known, place = np.unique(days, return_inverse=True)
    texts = pc.strftime(pa.array(known * 86_400, pa.timestamp("s")), form).to_pylist()
    return _items(texts)[place] if texts else ""


def _items(texts: list[str]) -> NDArray[np.generic]:
    """Texts of one length as items of so many bytes: whole numbers where numpy has some, which it copies
    faster."""
    width = len(texts[0])
    return np.frombuffer("".join(texts).encode(), f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")


@cache
def _thousand(before: str, after: str) -> NDArray[np.generic]:
    return _items([f"{before}{number:03}{after}" for number in range(1000)])


@cache
def _clock() -> NDArray[np.generic]:
    """The time of day of each of its seconds."""
    sixty = [f"{number:02}" for number in range(60)]
    return _items([":".join(parts) for parts in product(sixty[:24], sixty, sixty)])
