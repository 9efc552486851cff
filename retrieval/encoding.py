"""Columns of samples as the bytes of lines: encoded in Rust (gateway/encode), without Python's lock."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.gateway._core import encode_events, encode_header, encode_lines

Values: TypeAlias = "pa.Array | NDArray[np.int64]"
Piece: TypeAlias = "bytes | tuple[str, Values] | tuple[str, Values, bytes]"
"""Constant bytes of each line, or a style of gateway/encode/src/lines.rs with a value per line; in CSV also
the text of a missing value."""

_FORMATS = {
    pa.float32(): "f",
    pa.float64(): "g",
    pa.int8(): "c",
    pa.int16(): "s",
    pa.int32(): "i",
    pa.int64(): "l",
    pa.bool_(): "b",
    pa.string(): "u",
}
"""format strings of the Arrow C data interface"""


class Column(NamedTuple):
    """An array's buffers, as the Rust functions take them."""

    format: str
    length: int
    offset: int
    valid: pa.Buffer | None
    bounds: pa.Buffer | None
    content: pa.Buffer | None
    points: "list[Column]"
    """for lists: the column of their values"""


def lines(*pieces: Piece) -> bytes:
    """A line for each value of the columns; there must be at least one column."""
    return encode_lines(
        [piece if isinstance(piece, bytes) else (piece[0], _column(piece[1]), *piece[2:]) for piece in pieces]
    )


def header(payload: int, name: str, year: int, points: int, pairs: Mapping[str, str]) -> bytes:
    """The header line of a year's events in PB/HTTP. `pairs` are values of EPICS's fields, `points` the
    number of values of the first event."""
    return encode_header(payload, name, year, points, [*pairs.items()])


def events(
    payload: int,
    begin: int,
    nanoseconds: NDArray[np.int64],
    values: pa.Array,
    alarms: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    fields: Mapping[str, pa.Array],
) -> bytes:
    """Lines of PB/HTTP: events of the year that begins at the second `begin`, with severity and status."""
    severity, status = (None, None) if alarms is None else map(_column, alarms)
    texts = [(name, _column(of_each)) for name, of_each in fields.items()]
    return encode_events(payload, begin, _column(nanoseconds), _column(values), severity, status, texts)


def _column(values: Values) -> Column:
    array = pa.array(values) if isinstance(values, np.ndarray) else values
    if pa.types.is_list(array.type):
        valid, bounds, *_ = array.buffers()
        return Column("+l", len(array), array.offset, valid, bounds, None, [_column(array.values)])
    if array.type not in _FORMATS:
        array = array.cast(pa.string())
    valid, *others = array.buffers()
    bounds, content = others if len(others) == 2 else (None, *others)
    return Column(_FORMATS[array.type], len(array), array.offset, valid, bounds, content, [])
