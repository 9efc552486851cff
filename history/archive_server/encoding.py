"""Rows as PostgreSQL's messages DataRow, values as text: encoded in Rust (gateway/encode/src/rows.rs)."""

import numpy as np
import pyarrow as pa

from ringlog.gateway._core import encode_rows
from ringlog.gateway.buffers import buffers_of


def messages(batch: pa.RecordBatch) -> tuple[memoryview, np.ndarray]:
    """The messages of the rows, one after the other, and the offset of each, with the end of the last."""
    columns = [(pa.types.is_timestamp(each.type), buffers_of(_plain(each))) for each in batch.columns]
    encoded, offsets = encode_rows(columns)
    return memoryview(encoded), np.frombuffer(offsets, np.int64)


def _plain(column: pa.Array) -> pa.Array:
    """A column with times as microseconds since 1970."""
    if not pa.types.is_timestamp(column.type):
        return column
    return column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
