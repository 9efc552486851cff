"""Arrow batches of the buffers that the gateway's decoders make, and types as they write them."""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

Buffers: TypeAlias = tuple[bytes | None, bytes | None, bytes]
"""validity, bounds and content of a column"""

_TYPES = {
    "b": pa.bool_(),
    "s": pa.int16(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "g": pa.float64(),
    "tdD": pa.date32(),
    "ttu": pa.time64("us"),
    "tsu:": pa.timestamp("us"),
    "tsu:UTC": pa.timestamp("us", "UTC"),
    "tsn:": pa.timestamp("ns"),
    "u": pa.string(),
    "z": pa.binary(),
}
"""as the Arrow C data interface writes them"""
_FORMATS = {kind: text for text, kind in _TYPES.items()}


def schema_of(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """The schema of columns with these names and types."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns])


def arrow_type(text: str) -> pa.DataType:
    """The type that the Arrow C data interface writes so."""
    if text.startswith("d:"):
        digits, scale = text[2:].split(",")
        return pa.decimal128(int(digits), int(scale))
    return _TYPES[text]


def format_of(kind: pa.DataType) -> str:
    """How the Arrow C data interface writes a type; that of texts for a type that no decoder makes."""
    return _FORMATS.get(kind, "u")


def batch_of(schema: pa.Schema, count: int, columns: Sequence[Buffers]) -> pa.RecordBatch:
    """A batch of `count` rows."""
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(
                kind, count, [None if each is None else pa.py_buffer(each) for each in buffers]
            )
            for kind, (valid, bounds, content) in zip(schema.types, columns, strict=True)
            for buffers in [[valid, content] if bounds is None else [valid, bounds, content]]
        ],
        schema=schema,
    )
