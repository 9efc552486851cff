"""Arrow's columns as the functions of gateway/encode take them."""

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Values: TypeAlias = "pa.Array | NDArray[np.int64]"

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


class Buffers(NamedTuple):
    """An array's buffers, as the Rust functions take them."""

    format: str
    length: int
    offset: int
    valid: pa.Buffer | None
    bounds: pa.Buffer | None
    content: pa.Buffer | None
    points: "list[Buffers]"
    """for lists: the column of their values"""


def buffers_of(values: Values) -> Buffers:
    """The buffers of a column, as text if it has none of these types."""
    array = pa.array(values) if isinstance(values, np.ndarray) else values
    if pa.types.is_list(array.type):
        valid, bounds, *_ = array.buffers()
        return Buffers("+l", len(array), array.offset, valid, bounds, None, [buffers_of(array.values)])
    if array.type not in _FORMATS:
        array = array.cast(pa.string())
    valid, *others = array.buffers()
    bounds, content = others if len(others) == 2 else (None, *others)
    return Buffers(_FORMATS[array.type], len(array), array.offset, valid, bounds, content, [])
