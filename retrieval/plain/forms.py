"""Record batches as bytes: Arrow IPC, Parquet, CSV."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringlog.retrieval.queries import Part
from ringlog.retrieval.strings import Texts, csv_values, iso, joined

_VALUES = 1 << 17  # of CSV made at once
_LARGE = 1 << 18  # bytes of a buffer that is given on without being copied

MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}


def formed(form: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    """The batches in a form of MEDIA but json. `schema` is that of all of them."""
    if form == "csv":
        return _csv(schema, batches)
    if form == "parquet":
        return _written(batches, lambda sink: pq.ParquetWriter(sink, schema, compression="zstd"), bytes)
    # what IPC writes are the batches' own buffers, which do not change
    return _written(batches, lambda sink: pa.ipc.new_stream(sink, schema), memoryview)


class _Sink:
    """What was written since the last call; `kept` is what is kept of each part."""

    closed = False

    def __init__(self, kept: Callable[[Any], Part]) -> None:
        self._kept = kept
        self._parts: list[Part] = []

    def write(self, part: Any) -> int:
        self._parts.append(self._kept(part))
        return len(part)

    def taken(self) -> Iterator[Part]:
        parts, self._parts = self._parts, []
        return _gathered(parts)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True


def _written(
    batches: Iterator[pa.RecordBatch], writer_of: Callable[[Any], Any], kept: Callable[[Any], Part]
) -> Iterator[Part]:
    sink = _Sink(kept)
    with writer_of(pa.PythonFile(sink, "w")) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield from sink.taken()
    yield from sink.taken()


def _gathered(parts: Iterable[Part]) -> Iterator[Part]:
    """Small parts are joined; large ones stay as they are."""
    small: list[Part] = []
    for part in parts:
        if len(part) < _LARGE:
            small.append(part)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield part
    if small:
        yield b"".join(small)


def _csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    yield (",".join(schema.names) + "\n").encode()
    ends = [","] * (len(schema) - 1) + ["\n"]
    for batch in batches:
        step = max(1, _VALUES // len(schema))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield joined(*(_csv_column(column, end) for column, end in zip(part.columns, ends, strict=True)))


def _csv_column(column: pa.Array, end: str) -> Texts:
    if pa.types.is_timestamp(column.type):
        text = iso(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), end)
        return pc.if_else(column.is_valid(), text, end) if column.null_count else text
    return csv_values(column, "", end)
