"""The two forms of a table's files, rows and samples: their key and order, how they are cut into row groups,
and how a part of them is read.

Rows are ordered by time; a row group has a day at most. Samples are ordered by the number of their signal,
then by time; their row groups are short, since a reader mostly wants one signal.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringlog.schema.moments import microseconds

Cut: TypeAlias = Callable[[pa.RecordBatch], Iterator[tuple[int, pa.RecordBatch]]]
"""cuts a batch into parts, each with the number of its row group"""

_DAY = 86_400_000_000  # microseconds

_SAMPLES = 1 << 15
_MOST_SAMPLES = 1 << 20
_GROUPS = 2048
"""A row group has so many samples; from this number of groups on more, because each takes some 600 bytes in
the footer."""


class Rows:
    """Rows of a ring's log."""

    name = "rows"
    key: tuple[str, ...] = ("time", "seq_no")
    ends = 100
    """Rows of the first and of the last row group: the oldest and the newest rows are read quickly."""
    needed: tuple[str, ...] = ()
    """columns that are read with any others"""

    @property
    def order(self) -> list[tuple[str, str]]:
        """The order of a file, as Arrow's `sort_by` takes it."""
        return [(name, "ascending") for name in self.key]

    def keys(self, rows: pa.Table) -> list[np.ndarray]:
        """The major and the minor part of each row's key."""
        return [rows[name].cast(pa.int64()).to_numpy() for name in self.key]

    def cut(self) -> Cut:
        return _by_day

    def groups(self, file: pq.ParquetFile, schema: pa.Schema, number: int | None) -> range:
        """The row groups that may have rows of this signal; None: of any."""
        return range(file.num_row_groups)

    def within(
        self, batch: pa.RecordBatch, start: datetime | None, end: datetime | None, number: int | None
    ) -> pa.RecordBatch:
        """The rows from `start` on and before `end` of a file's batch; of samples those of a signal, if one
        is given."""
        if start is None and end is None:
            return batch
        times = batch["time"].cast(pa.int64()).to_numpy()
        first = 0 if start is None else int(times.searchsorted(microseconds(start)))
        after = len(times) if end is None else int(times.searchsorted(microseconds(end)))
        return batch.slice(first, max(0, after - first))


class Samples(Rows):
    """Samples of signals, each with a time of its own."""

    name = "samples"
    key = ("number", "time", "nanoseconds")
    ends = 0
    needed = ("number", "time")

    def keys(self, rows: pa.Table) -> list[np.ndarray]:
        number, time, nanoseconds = super().keys(rows)
        return [number, time * 1000 + nanoseconds]

    def cut(self) -> Cut:
        return _by_number()

    def groups(self, file: pq.ParquetFile, schema: pa.Schema, number: int | None) -> range:
        groups = range(file.num_row_groups)
        if number is None:
            return groups
        index = schema.names.index("number")

        def bound(group: int, which: str) -> int:
            return int(getattr(file.metadata.row_group(group).column(index).statistics, which))

        first = bisect_left(groups, number, key=lambda group: bound(group, "max"))
        return range(first, bisect_right(groups, number, first, key=lambda group: bound(group, "min")))

    def within(
        self, batch: pa.RecordBatch, start: datetime | None, end: datetime | None, number: int | None
    ) -> pa.RecordBatch:
        if number is not None:
            numbers = batch["number"].to_numpy()
            begin, stop = (int(numbers.searchsorted(number, side)) for side in ("left", "right"))
            batch = batch.slice(begin, stop - begin)
        if number is not None or (start is None and end is None):
            return super().within(batch, start, end, None)
        times = batch["time"].cast(pa.int64()).to_numpy()
        chosen = np.ones(len(times), bool)
        chosen &= True if start is None else times >= microseconds(start)
        chosen &= True if end is None else times < microseconds(end)
        return batch if chosen.all() else batch.filter(pa.array(chosen))


ROWS, SAMPLES = Rows(), Samples()


def form_of(names: Sequence[str]) -> Rows:
    """The form of a file with these columns."""
    return SAMPLES if "seq_no" not in names and "number" in names else ROWS


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    days = pc.divide(batch["time"].cast(pa.int64()), _DAY).to_numpy()
    start = 0
    while start < len(days):
        end = int(days.searchsorted(days[start], side="right"))
        yield int(days[start]), batch.slice(start, end - start)
        start = end


def _by_number() -> Cut:
    rows = group = room = 0

    def parts(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        nonlocal rows, group, room
        while batch.num_rows:
            if not room:
                group, room = group + 1, min(_MOST_SAMPLES, max(_SAMPLES, rows // _GROUPS))
            part = batch.slice(0, room)
            yield group, part
            rows, room, batch = rows + part.num_rows, room - part.num_rows, batch.slice(part.num_rows)

    return parts
