"""PostgreSQL's arrays of numbers as numpy arrays, without a Python object for each value.

They have one of two forms: array_send's, with a length before each value, or PostgreSQL's form in memory
(ringlog.array_bytes), which takes a fifth of the time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    # the package of an extra, which the server does not require
    import pyarrow as pa

Content: TypeAlias = "bytes | memoryview | pa.Buffer"
Numbers: TypeAlias = "tuple[np.ndarray, NDArray[np.bool_] | None]"
"""The values in the machine's byte order, perhaps unaligned, with any number for a null; and a mask of the
values that are not null, None without nulls."""
Unpack: TypeAlias = Callable[[Content, str], Numbers]
"""Decodes an array from its bytes and numpy's type of a value. Raises ValueError for more than one
dimension."""

HEAD = 20
"""bytes before the values of an array of one dimension"""
_NULL = 0xFFFFFFFF


def sent(content: Content, element: str) -> Numbers:
    """Decodes an array in array_send's form: number of dimensions, whether there are nulls, the elements'
    type; length and first index of the dimension; each value after its length, -1 for null.
    """
    (dimensions,) = np.frombuffer(content, ">u4", 1).tolist()
    if not _has_values(dimensions):
        return np.empty(0, element), None
    each = np.dtype([("length", ">u4"), ("value", np.dtype(element).newbyteorder(">"))])
    (n,) = np.frombuffer(content, ">u4", 1, 12).tolist()
    if memoryview(content).nbytes == HEAD + n * each.itemsize:
        found = np.frombuffer(content, each, n, HEAD)["value"]
        return found.astype(element), None
    octets = memoryview(content)[HEAD:]
    values, present = np.zeros(n, element), np.zeros(n, bool)
    offset = 0
    for number in range(n):
        if int.from_bytes(octets[offset : offset + 4]) == _NULL:
            offset += 4
            continue
        values[number] = np.frombuffer(octets, each, 1, offset)["value"][0]
        present[number] = True
        offset += each.itemsize
    return values, present


def in_memory(content: Content, element: str) -> Numbers:
    """Decodes an array in PostgreSQL's form in memory, without its length (ArrayType in
    src/include/utils/array.h): number of dimensions, the offset of the values if there are nulls, the
    elements' type; length and first index of the dimension; if there are nulls, a bit for each value that is
    not null; the values that are not null.
    """
    (dimensions,) = np.frombuffer(content, "<u4", 1).tolist()
    order: Literal["<", ">"] = "<"
    if dimensions > 0xFFFF:  # PostgreSQL's machine has the other byte order
        order, dimensions = ">", int(np.uint32(dimensions).byteswap())
    if not _has_values(dimensions):
        return np.empty(0, element), None
    _, begin, _, n, _ = np.frombuffer(content, f"{order}u4", 5).tolist()
    kind = np.dtype(element).newbyteorder(order)
    if not begin:
        return np.frombuffer(content, kind, n, HEAD).astype(element, copy=False), None
    bits = np.frombuffer(content, np.uint8, (n + 7) // 8, HEAD)
    there = np.unpackbits(bits, count=n, bitorder="little").astype(bool)
    values = np.zeros(n, element)
    # the offset counts from the length, which is not part of these bytes
    values[there] = np.frombuffer(content, kind, np.count_nonzero(there), begin - 4)
    return values, there


def in_memory_cut(
    heads: "pa.BinaryArray", values: "pa.BinaryArray", element: str
) -> tuple[NDArray[np.int32], np.ndarray]:
    """Decodes many arrays in the form of `in_memory`, each cut after HEAD bytes. Returns the offset of each
    array in the values, with the end of the last, and the values of all. A null counts as an empty array.
    Raises ValueError, also for an array with nulls.
    """
    begins, content = _laid_out(heads)
    words = np.frombuffer(content, "<u4")
    there = begins[:-1][np.diff(begins) > 0] // words.itemsize
    kind = np.dtype(element)
    if (words[there] > 0xFFFF).any():  # PostgreSQL's machine has the other byte order
        words, kind = words.byteswap(), kind.newbyteorder()
    for dimensions in np.unique(words[there]).tolist():
        _has_values(dimensions)
    there = there[words[there] == 1]
    if words[there + 1].any():
        raise ValueError("a waveform has nulls")
    bounds, content = _laid_out(values)
    if not np.array_equal(np.diff(bounds)[np.diff(begins) == HEAD], words[there + 3] * kind.itemsize):
        raise ValueError("an array does not have the length in its header")
    found = np.frombuffer(content, kind)
    return bounds // kind.itemsize, found.astype(element, copy=False)


def _laid_out(column: "pa.BinaryArray") -> tuple[NDArray[np.int32], memoryview]:
    """The offset of each item of a column, with the end of the last, and the bytes of all."""
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    if content is None:
        return bounds, memoryview(b"")
    return bounds - bounds[0], memoryview(content)[int(bounds[0]) : int(bounds[-1])]


def _has_values(dimensions: int) -> bool:
    if dimensions > 1:
        raise ValueError("an array has more than one dimension")
    return dimensions == 1
