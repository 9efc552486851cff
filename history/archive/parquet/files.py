"""A week of a table as a Parquet file: writing, reading and comparing.

Each column has its encoding (`archive.encoding`); row groups have a day at most, or few rows, with statistics
of single values except floats, and pages have checksums. Columns have the ids of their fields
(`archive.fields`), the schema's metadata names the signals. Numerics are decimals in files, and text where
rows are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.parquet import encoding
from ringlog.history.archive.parquet.forms import Cut, form_of
from ringlog.history.connection import BeyondArrow, ReadError, plain

__all__ = ["Damaged", "bits", "file_of", "footer", "groups_of", "read", "same", "width", "write"]

GROUP_BYTES = 64 << 20
"""rows of a row group, which is in memory as a whole; of a busy table it has less than a day"""

BATCH_BYTES = 8 << 20
"""bytes of a record batch that is read"""

_FOOTER_END = 8  # bytes

_PARSED = 16
"""Parsed footers in memory, about a megabyte each for 200 columns: parsing one takes longer than reading a
day."""

_FEW = 1000
"""The least rows of a row group, also of several days."""


FORM, PRESENT_FORM = b"ringlog.form", b"2"
"""In a file's metadata; files of version 1.0.0 have none."""


def write(
    stream: pa.NativeFile,
    batches: Iterator[pa.RecordBatch],
    metadata: Mapping[str, str],
    fields: Mapping[str, pa.Field] = MappingProxyType({}),
) -> int:
    """Writes rows, ordered by time, or samples, ordered by signal and time, to a new file. Returns their
    number.

    `fields` has the columns' fields in the file, with their ids (`archive.fields`). Raises ReadError
    for rows of other types, BeyondArrow for a numeric that no decimal is.
    """
    rows = 0
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None
    group: list[pa.RecordBatch] = []
    day = None
    try:
        for batch in batches:
            if schema is None:
                schema = pa.schema([fields.get(each.name, each) for each in batch.schema], dict(metadata))
                cut: Cut = form_of(schema.names).cut()
            for part_day, part in cut(_of_fields(schema, batch)):
                is_long = sum(each.num_rows for each in group) >= _FEW
                if (is_long and part_day != day) or sum(each.nbytes for each in group) > GROUP_BYTES:
                    is_first, table = writer is None, pa.Table.from_batches(group)
                    writer = writer or _writer(stream, schema, table)
                    _write_group(writer, table, is_first=is_first)
                    group = []
                day = part_day
                group.append(part)
                rows += part.num_rows
        if schema is not None:
            is_first, table = writer is None, pa.Table.from_batches(group, schema)
            writer = writer or _writer(stream, schema, table)
            _write_group(writer, table, is_first=is_first, is_last=True)
    except BaseException:
        with suppress(OSError, pa.ArrowException):
            if writer is not None:
                writer.close()
        raise
    if writer is not None:
        writer.close()
    return rows


def _writer(stream: pa.NativeFile, schema: pa.Schema, first: pa.Table) -> pq.ParquetWriter:
    """A writer of a file that begins with these rows."""
    # Arrow's schema is in the file's, and would have the names of the signals twice
    plain = schema.remove_metadata()
    writer = pq.ParquetWriter(stream, plain, store_schema=False, **encoding.options(plain, first))
    writer.add_key_value_metadata({**(schema.metadata or {}), FORM: PRESENT_FORM})
    return writer


def _write_group(writer: pq.ParquetWriter, table: pa.Table, *, is_first: bool, is_last: bool = False) -> None:
    """Writes a row group; the first and the last rows of a log's week are groups of their own."""
    short = 0 if table.num_rows < _FEW else form_of(table.schema.names).ends
    begin = min(short, table.num_rows) if is_first else 0
    end = max(begin, table.num_rows - short) if is_last else table.num_rows
    for start, stop in pairwise((0, begin, end, table.num_rows)):
        if start < stop:
            writer.write_table(table.slice(start, stop - start))


def _of_fields(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = []
    for field, values in zip(schema, batch.columns, strict=True):
        if pa.types.is_decimal(field.type) and pa.types.is_string(values.type):
            try:
                values = values.cast(field.type)
            except pa.ArrowInvalid:
                raise BeyondArrow(field.name, f"a numeric that is no {field.type}, as NaN", "22003") from None
        elif values.type != field.type:
            raise ReadError(f"column {field.name} is {values.type} now and was {field.type} before", None)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def read(
    folder: Folder,
    name: str,
    columns: Sequence[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    footer: str | None = None,
    number: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows from `start` on and before `end`, in batches of about 8 MB; of samples only those of the
    signal `number`, if that is given.

    The batches have those of `columns` that the file has, samples always number and time. `footer` is the
    digest of the footer when it was written: pages have checksums, but damaged statistics would hide rows,
    and some damages of a footer end the process. Raises Damaged.
    """
    try:
        with folder.opened(name) as source, file_of(source, footer) as file:
            schema = file.schema_arrow
            form = form_of(schema.names)
            wanted = None if columns is None else [*form.needed, *columns]
            names = [each for each in schema.names if wanted is None or each in wanted]
            groups = groups_of(file, schema, start, end, number=number)
            if not groups:
                return
            size = max(1024, BATCH_BYTES // sum(width(schema.field(each).type) for each in names))
            for batch in file.iter_batches(size, groups, names):
                # numerics are text here
                yield plain(form.within(batch, start, end, number))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise Damaged(f"{folder}/{name}: {error}") from error


def file_of(source: pa.NativeFile, footer: str | None) -> pq.ParquetFile:
    """An open file. Raises ValueError if its footer has another digest than this one."""
    metadata = None
    if footer is not None:
        end = _footer(source)
        if sha256(end).hexdigest() != footer:
            raise ValueError("its footer differs from the one written")
        metadata = _parsed(end)
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


@lru_cache(_PARSED)
def _parsed(end: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(end))


def footer(folder: Folder, name: str) -> str:
    """The SHA-256 of a file's footer. Raises Damaged."""
    with folder.opened(name) as source:
        return sha256(_footer(source)).hexdigest()


def _footer(source: pa.NativeFile) -> bytes:
    """The footer of a Parquet file, with its length and mark.

    A file ends with its metadata, their length in four bytes, little-endian, and `PAR1`:
    https://parquet.apache.org/docs/file-format/
    """
    size = source.size()
    if size < _FOOTER_END:
        raise ValueError(f"it has {size} bytes")
    length = int.from_bytes(source.read_at(4, size - _FOOTER_END), "little") + _FOOTER_END
    if length > size:
        raise ValueError("its footer differs from the one written")
    return bytes(source.read_at(length, size - length))


def groups_of(
    file: pq.ParquetFile,
    schema: pa.Schema,
    start: datetime | None,
    end: datetime | None,
    *,
    number: int | None = None,
) -> list[int]:
    """The row groups of a file that may have rows from `start` on and before `end`, by the statistics of
    their times; with `number` those that may have samples of this signal."""
    time = schema.names.index("time")
    return [
        group
        for group in form_of(schema.names).groups(file, schema, number)
        if _overlaps(file.metadata.row_group(group).column(time).statistics, start, end)
    ]


def _overlaps(statistics: pq.Statistics, start: datetime | None, end: datetime | None) -> bool:
    return bool((end is None or statistics.min < end) and (start is None or statistics.max >= start))


def width(kind: pa.DataType) -> int:
    """Approximate bytes of a value."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 64  # texts and waveforms: a guess


def same(here: Iterator[pa.RecordBatch], there: Iterator[pa.RecordBatch]) -> bool:
    """Whether two streams have the same rows, bit for bit; their batches may differ."""
    left = right = None
    while True:
        left = left if left is not None and left.num_rows else _next(here)
        right = right if right is not None and right.num_rows else _next(there)
        if left is None or right is None:
            return left is None and right is None
        rows = min(left.num_rows, right.num_rows)
        if left.schema.names != right.schema.names:
            return False
        for mine, theirs in zip(left.columns, right.columns, strict=True):
            one, other = mine.slice(0, rows), theirs.slice(0, rows)
            if one.type != other.type or not one.is_null().equals(other.is_null()):
                return False
            if not bits(one).equals(bits(other)):
                return False
        left, right = left.slice(rows), right.slice(rows)


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in batches if batch.num_rows), None)


def bits(values: pa.Array) -> pa.Array:
    """Floats as whole numbers: NaN is not equal to itself."""
    if pa.types.is_float32(values.type):
        return values.view(pa.int32())
    if pa.types.is_float64(values.type):
        return values.view(pa.int64())
    if pa.types.is_list(values.type):
        lengths = pc.list_value_length(values).fill_null(0).to_numpy()
        offsets = pa.array([0, *lengths.cumsum()], pa.int32())
        # flatten() has the points of a slice only
        return pa.ListArray.from_arrays(offsets, bits(values.flatten()))
    return values
