"""Columns of samples as the bytes of lines: encoded in Rust (gateway/encode), without Python's lock."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringlog.gateway._core import encode_events, encode_header, encode_lines
from ringlog.gateway.buffers import Values, buffers_of

Piece: TypeAlias = "bytes | tuple[str, Values] | tuple[str, Values, bytes]"
"""Constant bytes of each line, or a style of gateway/encode/src/lines.rs with a value per line; in CSV also
the text of a missing value."""


def lines(*pieces: Piece) -> bytes:
    """A line for each value of the columns; there must be at least one column."""
    return encode_lines(
        [each if isinstance(each, bytes) else (each[0], buffers_of(each[1]), *each[2:]) for each in pieces]
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
    severity, status = (None, None) if alarms is None else map(buffers_of, alarms)
    texts = [(name, buffers_of(of_each)) for name, of_each in fields.items()]
    return encode_events(payload, begin, buffers_of(nanoseconds), buffers_of(values), severity, status, texts)
