"""The forms of answers: record batches as bytes of Arrow IPC, Parquet, CSV."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.requests import Request

from ringlog.retrieval.encoding import Piece, lines
from ringlog.retrieval.plain import notes
from ringlog.retrieval.serving.parts import Part, Sink
from ringlog.retrieval.serving.refused import Refused

TIME = pa.timestamp("us", tz="UTC")
_VALUES = 1 << 17  # rows of CSV encoded at once

# first characters of a formula (OWASP: CSV Injection)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}


def formed(
    form: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, comments: bool = False
) -> Iterator[Part]:
    """The batches in a form of MEDIA except json. All have `schema`; with `comments` CSV begins with
    its notes."""
    if form == "csv":
        return _csv(schema, batches, comments)
    if form == "parquet":
        return _written(batches, lambda sink: pq.ParquetWriter(sink, schema, compression="zstd"), bytes)
    # IPC writes the batches' own buffers, which do not change
    return _written(batches, lambda sink: pa.ipc.new_stream(sink, schema), memoryview)


def _written(
    batches: Iterator[pa.RecordBatch], writer_of: Callable[[Any], Any], kept: Callable[[Any], Part]
) -> Iterator[Part]:
    sink = Sink(kept)
    with writer_of(pa.PythonFile(sink, "w")) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield from sink.drained()
    yield from sink.drained()


def _csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch], comments: bool) -> Iterator[bytes]:
    if comments:
        yield notes.comments(schema)
    yield (",".join(map(_quoted, schema.names)) + "\n").encode()
    for batch in batches:
        step = max(1, _VALUES // len(schema))
        for start in range(0, batch.num_rows, step):
            pieces = [
                piece for column in batch.slice(start, step).columns for piece in (_csv_piece(column), b",")
            ]
            yield lines(*pieces[:-1], b"\n")


def _quoted(name: str) -> str:
    if name.startswith(_FORMULA):
        # a spreadsheet would evaluate it
        name = f"'{name}"
    return '"' + name.replace('"', '""') + '"' if re.search('[",\n]', name) else name


def _csv_piece(column: pa.Array) -> Piece:
    if pa.types.is_timestamp(column.type):
        return ("iso", column.cast(TIME).cast(pa.int64()))
    return ("csv", column, b"")


def form_of(request: Request, default: str = "json") -> str:
    form = request.query_params.get("format", default)
    if form not in MEDIA:
        raise Refused(400, f"format={form[:20]!r} is not one of {', '.join(MEDIA)}")
    return form


def attached(request: Request, form: str, name: str) -> dict[str, str]:
    """A header by which a browser saves the answer as a file, if `download` requests it."""
    if "download" not in request.query_params:
        return {}
    return {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
