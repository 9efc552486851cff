"""Arrays of numbers over psycopg: sent packed, returned as numpy arrays."""

import array
import importlib
import struct
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.array import ArrayBinaryLoader, ArrayLoader

from ringlog.schema.column_type import NUMBERS, ColumnType

_TYPES = {kind.sql.lower(): kind for kind in (ColumnType(kind, is_array=True) for kind in NUMBERS)}
"""by their names in the catalogue"""

_HEAD = struct.Struct(">iiIii")


class Sent:
    """An array in PostgreSQL's binary form."""

    def __init__(self, content: bytes) -> None:
        self.content = content


_SENT: dict[str, type[Sent]] = {
    kind: type(f"Sent_{column_type.numpy}", (Sent,), {}) for kind, column_type in _TYPES.items()
}


def sent(kind: str, packed: bytes) -> Sent:
    """Packed little-endian elements as an array of this type, which is_packed.

    array_recv (arrayfuncs.c) takes number of dimensions, whether there are NULLs, the elements' oid, length
    and lower bound of each dimension, then each element with its length before it.
    """
    element = _TYPES[kind].element.oid
    elements = array.array(_TYPES[kind].array, packed)
    count, width = len(elements), elements.itemsize
    if not count:
        return _SENT[kind](_HEAD.pack(0, 0, element, 0, 0)[:12])
    elements.byteswap()
    big_endian = elements.tobytes()
    framed = bytearray(count * (4 + width))
    framed[3 :: 4 + width] = bytes([width]) * count
    for octet in range(width):
        framed[4 + octet :: 4 + width] = big_endian[octet::width]
    return _SENT[kind](_HEAD.pack(1, 0, element, count, 1) + framed)


def is_packed(kind: str) -> bool:
    """Whether values of a type of the catalogue are sent packed."""
    return kind in _TYPES


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Makes a connection accept `Sent`, and return arrays of numbers as numpy arrays if numpy is
    installed."""
    for kind, column_type in _TYPES.items():
        oid, dtype = column_type.oid, column_type.numpy
        connection.adapters.register_dumper(_SENT[kind], _dumper(oid))
        try:
            numpy = importlib.import_module("numpy")
        except ModuleNotFoundError:
            continue
        connection.adapters.register_loader(oid, _text_loader(numpy, column_type.element.oid, dtype))
        connection.adapters.register_loader(oid, _binary_loader(numpy, dtype))


def _dumper(oid_of_array: int) -> type[Dumper]:
    class SentDumper(Dumper):
        format = Format.BINARY
        oid = oid_of_array

        def dump(self, obj: Sent) -> bytes:
            return obj.content

    return SentDumper


def _text_loader(numpy: Any, element: int, dtype: str) -> type[ArrayLoader]:
    class TextLoader(ArrayLoader):
        base_oid = element

        def load(self, data: Any) -> Any:
            text = bytes(data).decode()
            if "NULL" in text or text.startswith(("{{", "[")):
                return super().load(data)  # no waveform
            points = text[1:-1].split(",") if text != "{}" else []
            return numpy.array([point == "t" for point in points] if dtype == "?" else points, dtype)

    return TextLoader


def _binary_loader(numpy: Any, dtype: str) -> type[ArrayBinaryLoader]:
    framed = numpy.dtype([("length", ">i4"), ("value", numpy.dtype(dtype).newbyteorder(">"))])

    class BinaryLoader(ArrayBinaryLoader):
        def load(self, data: Any) -> Any:
            content = bytes(data)
            dimensions, has_nulls = struct.unpack_from(">ii", content)
            if dimensions > 1 or has_nulls:
                return super().load(data)  # no waveform
            if dimensions == 0:
                return numpy.empty(0, dtype)
            return numpy.frombuffer(content, framed, offset=_HEAD.size)["value"].astype(dtype)

    return BinaryLoader
