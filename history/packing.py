"""Packs the values of a column into bytes, and unpacks them as an Arrow array, bit for bit.

The first byte is the form: one repeated value; a list of at most 256 values and one byte for each row,
compressed by zstd; the first bytes of all numbers, then the second ones and so on, each compressed by lz4 if
that saves a fifth; for times their distances. A bitmap of the nulls precedes them if there are any. Waveforms
and texts are their packed lengths, followed by the packed points of all.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.gateway import unpack_numbers
from ringlog.schema.column_type import ColumnType, Kind

Mask = NDArray[np.bool_]

DAMAGES = (ValueError, IndexError, OSError)

_PLAIN, _SAME, _FEW, _PLANES, _DISTANCES, _LISTS = range(6)
_NULLS = 0x80
"""bit of the first byte: a bitmap of the values that are not null follows"""

_MOST = 256
"""the most different values that one byte can number"""
_MOST_POINTS = 2**31 - 1
"""the most values of all lists of an Arrow array"""
_MOST_OF_A_BYTE = 1 << 15
"""the most bytes that zstd makes of one: a block of 4 bytes stands for at most 128 KiB"""
_SAVING = 0.8
"""the largest ratio of compressed to plain bytes"""

_LZ4 = pa.Codec("lz4_raw")
_ZSTD = pa.Codec("zstd", 1)


def arrow_of(kind: ColumnType) -> pa.DataType:
    """The type in which a column is packed: numerics are text, as PostgreSQL writes and sends them."""
    return pa.string() if kind.kind is Kind.NUMERIC else kind.arrow


def packed(values: NDArray[np.generic], there: Mask | None = None) -> bytes:
    """Packs numbers, or bits as u1. Those where `there` is false are null; None: there are no nulls."""
    if there is not None and not there.all():
        values = values.copy()
        values[~there] = values[there][0] if there.any() else 0
        return _with_nulls(_numbers(values), there)
    return _numbers(values)


def packed_times(times: NDArray[np.int64]) -> bytes:
    """Packs times in microseconds since 1970."""
    distances = np.diff(times)
    least = distances.min() if len(distances) else 0
    rest = distances - least
    width = next(width for width in (1, 2, 4, 8) if not len(rest) or int(rest.max()) < 1 << (8 * width - 1))
    head = np.array([times[0] if len(times) else 0, least], np.int64).tobytes()
    return bytes([_DISTANCES, width]) + head + _numbers(rest.astype(f"u{width}"))


def packed_lists(lengths: NDArray[np.int32], points: NDArray[np.generic], there: Mask | None = None) -> bytes:
    """Packs waveforms: the number of points of each, 0 for a null, and the points of all."""
    of_lengths = _numbers(lengths)
    body = bytes([_LISTS]) + len(of_lengths).to_bytes(4, "little") + of_lengths + _numbers(points)
    return body if there is None or there.all() else _with_nulls(body, there)


def packed_texts(texts: Sequence[str | None]) -> bytes:
    content = [b"" if text is None else text.encode() for text in texts]
    points = np.frombuffer(b"".join(content), np.uint8)
    lengths = np.array([len(each) for each in content], np.int32)
    return packed_lists(lengths, points, np.array([text is not None for text in texts], bool))


def unpacked(content: pa.Buffer | bytes, kind: pa.DataType, n: int) -> pa.Array:
    """`n` values of this type from `content`, made by `packed`, `packed_times`, `packed_lists` or
    `packed_texts`. Raises one of DAMAGES for other bytes, if they can be recognised."""
    content = pa.py_buffer(content)
    octets = memoryview(content).cast("B")  # Arrow's bytes are signed
    form, offset = octets[0], 1
    validity = None
    if form & _NULLS:
        offset += (n + 7) // 8
        validity = content.slice(1, offset - 1)
    if form & ~_NULLS == _LISTS:
        return _lists(octets[offset:], kind, n, validity)
    width, is_bit = _shape(kind)
    values = _values([(form & ~_NULLS, octets[offset:], n)], width)
    if is_bit:
        values = pa.py_buffer(np.packbits(np.frombuffer(values, np.uint8), bitorder="little"))
    return pa.Array.from_buffers(kind, n, [validity, values])


def joined(contents: Sequence[bytes], kind: pa.DataType, numbers: Sequence[int]) -> pa.Array:
    """The values of several contents, each with this number of values, as one array. Raises as `unpacked`."""
    forms = {content[0] for content in contents}
    if pa.types.is_boolean(kind) or any(form == _LISTS or form & _NULLS for form in forms):
        return pa.concat_arrays(list(map(unpacked, contents, [kind] * len(contents), numbers)))
    parts = [(each[0], memoryview(each)[1:], n) for each, n in zip(contents, numbers, strict=True)]
    return pa.Array.from_buffers(kind, sum(numbers), [None, _values(parts, _shape(kind)[0])])


@cache
def _shape(kind: pa.DataType) -> tuple[int, bool]:
    """The width of a value in bytes, and whether it is a bit."""
    return (kind.bit_width + 7) // 8, pa.types.is_boolean(kind)


def _with_nulls(body: bytes, there: Mask) -> bytes:
    return bytes([body[0] | _NULLS]) + np.packbits(there, bitorder="little").tobytes() + body[1:]


def _numbers(values: NDArray[np.generic]) -> bytes:
    """The packed numbers, with the byte of their form."""
    values = np.ascontiguousarray(values)
    if not len(values):
        return bytes([_PLAIN])
    bits = values.view(f"u{values.itemsize}")
    if (bits == bits[0]).all():
        return bytes([_SAME]) + values[:1].tobytes()
    if values.itemsize > 1:
        few = pa.array(bits[:: max(1, len(bits) // _MOST)]).dictionary_encode()
        # a sample mostly shows that there are too many values for a list
        if (
            len(few.dictionary) <= _MOST // 2
            and len((few := pa.array(bits).dictionary_encode()).dictionary) <= _MOST
        ):
            distinct = np.asarray(few.dictionary)
            indexes = np.asarray(few.indices).astype(np.uint8)
            return bytes([_FEW, len(distinct) - 1]) + distinct.tobytes() + _compressed(_ZSTD, indexes)
        planes = bits.view(np.uint8).reshape(-1, values.itemsize).T
        shorter = bytes([_PLANES]) + _compressed(_LZ4, planes)
    else:
        shorter = bytes([_PLANES]) + _compressed(_ZSTD, bits)
    return shorter if len(shorter) < _SAVING * values.nbytes else bytes([_PLAIN]) + values.tobytes()


def _compressed(codec: pa.Codec, values: NDArray[np.generic]) -> bytes:
    return bytes(codec.compress(pa.py_buffer(np.ascontiguousarray(values))))


def _values(parts: Sequence[tuple[int, memoryview, int]], width: int) -> pa.Buffer:
    """The values of all parts, as whole numbers of this width: each has a form, its bytes and its number of
    values."""
    # Arrow uses freed memory again without a page fault for each page
    values = pa.allocate_buffer(width * sum(n for _, _, n in parts))
    unpack_numbers(parts, width, values)
    return values


def _lists(body: memoryview, kind: pa.DataType, n: int, validity: pa.Buffer | None) -> pa.Array:
    end = 4 + int.from_bytes(body[:4], "little")
    lengths = np.frombuffer(_values([(body[4], body[5:end], n)], 4), np.uint32)
    offsets = np.append(np.uint64(0), np.cumsum(lengths, dtype=np.uint64))
    many = int(offsets[-1])
    if many > _MOST_POINTS or (body[end] != _SAME and many > _MOST_OF_A_BYTE * (len(body) - end)):
        raise ValueError(f"{n} packed lists have {many} values")
    offsets = offsets.astype(np.int32)
    if pa.types.is_string(kind):
        points = _values([(body[end], body[end + 1 :], many)], 1)
        return pa.Array.from_buffers(kind, n, [validity, pa.py_buffer(offsets), points])
    points = unpacked(body[end:], kind.value_type, many)
    return pa.Array.from_buffers(kind, n, [validity, pa.py_buffer(offsets)], children=[points])
