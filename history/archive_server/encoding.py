"""Rows as PostgreSQL's messages DataRow, values as text.

https://www.postgresql.org/docs/current/protocol-message-formats.html: each is `D`, its length, the number
of values, and before each value its length, -1 for null; whole numbers are in network order.
"""

from datetime import UTC, datetime, timedelta
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EARLIEST, _LATEST = (
    (datetime(year, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for year in (1, 9999)
)
"""The first and the last time with a year of four digits, in microseconds since 1970."""


def messages(batch: pa.RecordBatch) -> tuple[memoryview, np.ndarray]:
    """The messages of the rows, one after the other, and the offset of each, with the end of the last."""
    parts = []
    sizes = np.full(batch.num_rows, 6, np.int64)
    for column in batch.columns:
        value = as_text(column)
        lengths, value = pc.binary_length(value), value.cast(pa.large_binary())
        if value.null_count:
            lengths, value = lengths.fill_null(-1), value.fill_null(b"")
        numbers = lengths.to_numpy()
        sizes += 4 + np.maximum(numbers, 0)
        parts += [_fixed(numbers.astype(">i4")), value]
    heads = np.zeros(batch.num_rows, [("kind", "S1"), ("size", ">i4"), ("columns", ">i2")])
    heads["kind"], heads["size"], heads["columns"] = b"D", sizes, batch.num_columns
    joined = pc.binary_join_element_wise(_fixed(heads), *parts, pa.scalar(b"", pa.large_binary()))
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset :][: len(joined) + 1]
    return memoryview(joined.buffers()[2]) if batch.num_rows else memoryview(b""), offsets


def _fixed(values: np.ndarray) -> pa.Array:
    """The length of each in bytes."""
    data = np.ascontiguousarray(values)
    offsets = np.arange(len(data) + 1, dtype=np.int64) * data.itemsize
    return pa.Array.from_buffers(
        pa.large_binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def as_text(values: pa.Array) -> pa.Array:
    """Values as the text that PostgreSQL's input functions take."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return _times(values)
    if pa.types.is_list(kind):
        return _lists(values)
    return values.cast(pa.large_string())


def _times(values: pa.Array) -> pa.Array:
    numbers = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    bounds = pc.min_max(numbers)
    if bounds["min"].is_valid and not _EARLIEST <= bounds["min"].as_py() <= bounds["max"].as_py() < _LATEST:
        return pa.array(
            [None if each is None else _far(each) for each in numbers.to_pylist()], pa.large_string()
        )
    # without a time zone, which Arrow would look up for each value
    text = numbers.cast(pa.timestamp("us")).cast(pa.large_string())
    return pc.binary_join_element_wise(text, *(pa.scalar(mark, pa.large_string()) for mark in ("Z", "")))


def _far(microseconds: int) -> str:
    """A time of any year, as PostgreSQL writes it."""
    day, rest = divmod(microseconds, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    text = str(np.datetime64(day, "D"))
    year, month, date = text.rsplit("-", 2)
    number = int(year)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}+00"
    # 1 BC is the year before 1
    return f"{number if number > 0 else 1 - number:04}-{month}-{date} {clock}{'' if number > 0 else ' BC'}"


def _lists(values: pa.Array) -> pa.Array:
    """Arrays as `{1,NULL,"text"}`."""
    points = as_text(values.flatten())
    if pa.types.is_string(values.type.value_type):
        escaped = reduce(
            lambda text, mark: pc.replace_substring(text, mark, "\\" + mark), ("\\", '"'), points
        )
        quote = pa.scalar('"', pa.large_string())
        points = pc.binary_join_element_wise(quote, escaped, quote, pa.scalar("", pa.large_string()))
    points = points.fill_null("NULL")
    lengths = pc.list_value_length(values).fill_null(0).to_numpy()
    offsets = pa.array([0, *lengths.cumsum()], pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, points), pa.scalar(",", pa.large_string()))
    brackets = [pa.scalar(mark, pa.large_string()) for mark in ("{", "}", "")]
    whole = pc.binary_join_element_wise(brackets[0], joined, brackets[1], brackets[2])
    return pc.if_else(values.is_valid(), whole, pa.scalar(None, pa.large_string()))
