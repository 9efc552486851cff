"""CSV files, each with a line of names."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ringlog.history.incoming import Description, IncomingError, Source
from ringlog.history.sources.folders import files_in

_BLOCK = 8 << 20  # bytes
_HEAD = 1 << 20
_NULLS = ["", "NULL", "null", "\\N"]


class CsvFiles(Source):
    """A file, or all files of a folder in the order of their names, plain or *.gz.

    A delimiter is found in the line of names: the first of , ; tab | that it has.
    """

    def __init__(self, path: Path, described: Description) -> None:
        self._path = path.absolute()
        self._described = described
        self._all = 0
        self._before = 0
        self._file: pa.NativeFile | None = None

    def __str__(self) -> str:
        return f"csv:{self._path}"

    def fraction(self) -> float | None:
        if not self._all:
            return None
        now = self._file.tell() if self._file is not None and not self._file.closed else 0
        return min(1.0, (self._before + now) / self._all)

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. All lines are read, also those before `start`."""
        files = files_in(self._path, "csv", "gz")
        self._all = sum(file.stat().st_size for file in files)
        self._before = 0
        for file in files:
            try:
                with pa.OSFile(str(file)) as source:
                    self._file = source
                    zipped = pa.CompressedInputStream(source, "gzip") if file.suffix == ".gz" else source
                    yield from self._of(file, zipped, wanted)
            except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
                raise IncomingError(f"{file}: {error}") from None
            self._before += file.stat().st_size

    def _of(self, file: Path, source: pa.NativeFile, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        opener = pa.input_stream(str(file), compression="gzip" if file.suffix == ".gz" else None)
        with opener as head:
            names, _, first = head.read(_HEAD).decode("utf-8-sig", "replace").partition("\n")
        delimiter = next((each for each in ",;\t|" if each in names), ",")
        columns = [name.strip().strip('"') for name in names.strip().split(delimiter)]
        chosen = self._described.chosen(columns, wanted.names)
        if "time" not in chosen:
            raise IncomingError(f"{file} has no column {self._described.time!r}: it has {', '.join(columns)}")
        types = {name: wanted.field(column).type for column, name in chosen.items()}
        value = first.partition("\n")[0].split(delimiter)
        index = columns.index(chosen["time"])
        types[chosen["time"]] = self._type_of_time(
            value[index].strip().strip('"') if index < len(value) else ""
        )
        reader = csv.open_csv(
            source,
            csv.ReadOptions(block_size=_BLOCK, column_names=columns, skip_rows=1),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(
                column_types=types,
                include_columns=[*chosen.values()],
                null_values=_NULLS,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["1", "true", "t", "True"],
                false_values=["0", "false", "f", "False"],
                timestamp_parsers=[self._described.time_format] if self._described.time_format else None,
            ),
        )
        with reader:
            for batch in reader:
                self._demand_finite(batch)
                yield batch

    def _demand_finite(self, batch: pa.RecordBatch) -> None:
        """The reader takes numbers beyond the range of a type for infinite ones."""
        if self._described.values == "round":
            return
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
                raise IncomingError(
                    f"column {name} has a number beyond the range of its type, or an infinite one:"
                    ' values = "round" in the description takes them as infinite'
                )

    def _type_of_time(self, text: str) -> pa.DataType:
        """The type that the reader makes of the times, by the first of them."""
        if self._described.time_format:
            return pa.timestamp("us")
        if text.lstrip("-").isdigit() and len(text) != 8:
            return pa.int64()
        zoned = text.endswith("Z") or "+" in text[10:] or "-" in text[10:]
        return pa.timestamp("ns", "UTC" if zoned else None)
