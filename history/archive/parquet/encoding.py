"""The options by which a week's file is written: each column has the smaller of the encodings that suit it.

Readings that take few values are smallest by a dictionary, readings that use most of their bits by streams
of their bytes, numbers that increase by their differences. All engines of docs/how-to/archive.md read these.
"""

import pyarrow as pa
import pyarrow.parquet as pq

LEVEL = 15
"""of zstd. A week is written once, when its rows are old, and read often; a core writes some millions of
values a second at this level, and most weeks in seconds."""

_TRIED = 1 << 14
"""The first rows of a file, in which encodings are compared."""

_DICTIONARY = None
_ENCODINGS = {
    "FLOAT": ("BYTE_STREAM_SPLIT", _DICTIONARY),
    "DOUBLE": ("BYTE_STREAM_SPLIT", _DICTIONARY),
    "INT32": ("DELTA_BINARY_PACKED", _DICTIONARY),
    "INT64": ("DELTA_BINARY_PACKED", _DICTIONARY),
}
"""by physical type; others have a dictionary: https://parquet.apache.org/docs/file-format/data-pages/encodings/"""


def options(schema: pa.Schema, rows: pa.Table) -> dict[str, object]:
    """The options of a file's writer, by the first rows of the file.

    Encodings are compared at the file's own level: at a lower one their order by size differs.
    """
    rows = rows.slice(0, _TRIED)
    suitable = _suitable(schema)
    sizes: dict[str, dict[str | None, int]] = {path: {} for path in suitable}
    for number in range(max(len(encodings) for encodings in suitable.values())):
        tried = {path: encodings[min(number, len(encodings) - 1)] for path, encodings in suitable.items()}
        for path, size in _sizes(schema, rows, tried).items():
            sizes[path][tried[path]] = size
    return _options(schema, {path: min(by_size, key=by_size.__getitem__) for path, by_size in sizes.items()})


def _suitable(schema: pa.Schema) -> dict[str, tuple[str | None, ...]]:
    """The encodings that suit each column, by its path in a file."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, store_decimal_as_integer=True)
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return {
        column.path: _ENCODINGS.get(column.physical_type, (_DICTIONARY,))
        for column in map(columns.column, range(len(columns)))
    }


def _sizes(schema: pa.Schema, rows: pa.Table, encodings: dict[str, str | None]) -> dict[str, int]:
    """The bytes of each column of these rows in these encodings."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=max(1, len(rows)), **_options(schema, encodings))
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    sizes = dict.fromkeys(encodings, 0)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            sizes[column.path_in_schema] += column.total_compressed_size
    return sizes


def _options(schema: pa.Schema, encodings: dict[str, str | None]) -> dict[str, object]:
    return {
        "compression": "zstd",
        "compression_level": LEVEL,
        "use_dictionary": [path for path, encoding in encodings.items() if encoding is _DICTIONARY],
        "column_encoding": {path: each for path, each in encodings.items() if each is not _DICTIONARY},
        # Parquet's bounds of floats leave NaN out: DuckDB and pyarrow would skip row groups with rows of NaN
        "write_statistics": [
            field.name
            for field in schema
            if not pa.types.is_floating(field.type) and not pa.types.is_nested(field.type)
        ],
        "store_decimal_as_integer": True,
        "write_page_checksum": True,
    }
