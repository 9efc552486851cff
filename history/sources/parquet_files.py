"""Parquet files of any writer."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from ringlog.history.archive.parquet.files import BATCH_BYTES, width
from ringlog.history.incoming import Description, IncomingError, Source
from ringlog.history.sources.folders import files_in


class ParquetFiles(Source):
    """A file, or all files of a folder in the order of their names; each has the columns of its own."""

    def __init__(self, path: Path, described: Description) -> None:
        self._path = path.absolute()
        self._described = described
        self._done = self._all = 0

    def __str__(self) -> str:
        return f"parquet:{self._path}"

    def fraction(self) -> float | None:
        return self._done / self._all if self._all else None

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See Source. Row groups that have no rows of that time by their statistics are not read."""
        try:
            files = files_in(self._path, "parquet")
            self._all = sum(pq.read_metadata(file).num_rows for file in files)
            for file in files:
                with pq.ParquetFile(file, pre_buffer=False) as source:
                    yield from self._of(source, wanted, start, end)
        except (OSError, pa.ArrowException) as error:
            raise IncomingError(f"{self._path}: {error}") from None

    def _of(
        self, source: pq.ParquetFile, wanted: pa.Schema, start: datetime | None, end: datetime
    ) -> Iterator[pa.RecordBatch]:
        schema = source.schema_arrow
        chosen = self._described.chosen(schema.names, wanted.names)
        if "time" not in chosen:
            raise IncomingError(f"{self._path} has no column {self._described.time!r}: it has {schema.names}")
        index = source.schema_arrow.names.index(chosen["time"])
        groups, before = [], 0
        for number in range(source.num_row_groups):
            group = source.metadata.row_group(number)
            if self._may_have(group, schema.names[index], start, end):
                groups.append(number)
            elif not groups:
                before += group.num_rows
        self._done += before
        size = max(1024, BATCH_BYTES // sum(width(schema.field(name).type) for name in chosen.values()))
        if groups:
            for batch in source.iter_batches(size, groups, [*chosen.values()]):
                yield batch
                self._done += batch.num_rows

    def _may_have(self, group: pq.RowGroupMetaData, name: str, start: datetime | None, end: datetime) -> bool:
        for number in range(group.num_columns):
            column = group.column(number)
            if column.path_in_schema == name and column.is_stats_set and column.statistics.has_min_max:
                least, most = (self._moment(each) for each in (column.statistics.min, column.statistics.max))
                if least is not None and most is not None:
                    return least < end and (start is None or most >= start)
        return True

    def _moment(self, value: object) -> datetime | None:
        """A bound as a time, if it is one; in a repeated hour the statistics may be an hour off."""
        if not isinstance(value, datetime):
            return None
        return value if value.tzinfo else value.replace(tzinfo=ZoneInfo(self._described.timezone))
