"""Reads rows of a table as Arrow record batches, oldest first, from PostgreSQL and the archive.

Rows are read on the caller's own connection, so PostgreSQL decides which of them it may read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.folder import Folder
from ringlog.history.archive.parquet.files import read as read_file
from ringlog.history.archive.parquet.late import merged
from ringlog.history.closed import are_there, blocks
from ringlog.history.connection import Connection, records, rows, run, time_literal, transaction
from ringlog.history.series import series
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import MICROSECOND, microseconds, moment_of
from ringlog.schema.sql_files import sql_file

_FEW = 10_000
"""the most rows that are read as rows and not as blocks"""
_NARROW = 16
"""the most columns for which a block is read even for few rows"""
_SHORT = timedelta(hours=1)
_ENOUGH = 1 << 20
"""bytes of blocks that become one batch"""
_MOST = 512
"""factor on the number of blocks that are read at once"""
_SHARES = (0.25, 1)
"""the same of the first queries: a few blocks are the first batch, sooner"""


def read(
    database: str | Connection,
    table: str,
    columns: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    newest_before: bool = False,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The log of a table from `start` on and before `end`, ordered by time and seq_no; None is no bound.

    Each batch has `time` (timestamp[us, UTC]) and `columns`, any others of the table including seq_no, in
    their Arrow types: real is float32, double float64, int int32, smallint int16, bigint int64, bit bool,
    varchar string. Null is no reading. With `newest_before` the newest row before `start` comes first, if
    there is one. `limit` is the most rows after it. There is at least one batch, which may be empty; a batch
    has about 8 MB at most.

    `database` is a connection string, or a connection, whose transaction ends with the iterator. Closing the
    iterator cancels the query. Raises ReadError; archive.folder.Damaged for a cold week's file;
    ValueError for a bound without a time zone.
    """
    for bound in (start, end):
        if bound is not None and bound.tzinfo is None:
            raise ValueError(f"a bound must have a time zone: {bound}")
    others = [column for column in dict.fromkeys(columns) if column != "time"]
    return _read(database, table, others, start, end, newest_before, limit)


def newest(
    database: str | Connection, table: str, columns: Sequence[str], before: datetime
) -> pa.RecordBatch | None:
    """The newest row before an instant, in the form of `read`; None if there is none. Raises as
    `read` does."""
    others = [column for column in dict.fromkeys(columns) if column != "time"]
    with transaction(database) as connection:
        # a block with the last moment before the instant is enough
        for batch in _leading(connection, table, others, before - MICROSECOND, before, True).all:
            if batch.num_rows:
                return batch.slice(batch.num_rows - 1)
        weeks = held(connection, table, before).weeks
        # read to its end, because a cancellation could hit the connection's next query
        return next(iter([*_newest_before(connection, table, others, before, weeks)]), None)


def picked(
    database: str | Connection,
    table: str,
    columns: Sequence[str],
    start: datetime,
    width: timedelta,
    n: int,
    *,
    last: bool,
) -> list[pa.RecordBatch] | None:
    """The first rows of `n` consecutive spans from `start` on, or with `last` the last ones, in the form of
    `read`; each is looked up separately. None if some of them are in files. Raises as `read` does.
    """
    others = [column for column in dict.fromkeys(columns) if column != "time"]
    end = start + n * width
    with transaction(database) as connection:
        if any(week.ends > start for week in held(connection, table, end).weeks):
            return None
        query = sql.SQL(_PICKED).format(
            last=sql.Literal(n - 1),
            log=_log(table),
            columns=sql.SQL(", ").join(map(sql.Identifier, ["time", *others])),
            start=time_literal(start),
            end=time_literal(end),
            width=sql.Literal(f"{width // MICROSECOND} microseconds"),
            order=sql.SQL("desc" if last else "asc"),
        )
        return [*rows(connection, query)]


# the bounds of all spans let the planner exclude partitions
_PICKED = sql_file(__file__, "reading_picked")


def held(connection: Connection, table: str, end: datetime | None) -> "_Tiers":
    """Where the rows before `end` are stored. The lock keeps all partitions in the log until the transaction
    ends."""
    run(connection, sql.SQL("lock table only {} in access share mode").format(_log(table)))
    return _tiers(connection, table, end)


def _read(
    database: str | Connection,
    table: str,
    columns: Sequence[str],
    start: datetime | None,
    end: datetime | None,
    newest_before: bool,
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    with transaction(database) as connection:
        left = limit
        begun = False
        tiers: _Tiers | None = None
        # a time that begins with closed rows often has only those: then one query is enough
        may_lead = limit is None or len(columns) <= _NARROW
        for share in _SHARES if may_lead else ():
            if start is None:
                break
            found = _leading(connection, table, columns, start, end, newest_before, share)
            if found.before is not None:
                yield found.before
                newest_before = False
            elif newest_before and found.batches:
                tiers = held(connection, table, end)
                yield from _newest_before(connection, table, columns, start, tiers.weeks)
                newest_before = False
            for batch in found.batches:
                yield batch if left is None else batch.slice(0, left)
                begun = True
                left = left and max(0, left - batch.num_rows)
                if left == 0:
                    return
            start = found.until
            if begun and end is not None and start >= end and not newest_before:
                return
            if not found.is_full:
                break
        tiers = tiers or held(connection, table, end)
        if newest_before and start is not None:
            yield from _newest_before(connection, table, columns, start, tiers.weeks)
        for piece in _pieces(connection, table, columns, start, end, tiers, left):
            # read to its end, which is near, because a cancellation could hit the connection's next query
            for batch in piece:
                yield batch if left is None else batch.slice(0, left)
                left = left and max(0, left - batch.num_rows)
            if left == 0:
                return


@dataclass(frozen=True)
class _Leading:
    """The closed rows at the begin of a time, without a gap up to `until`. `before` is the newest row before
    the time, if the blocks have it; `is_full`: more blocks may follow."""

    before: pa.RecordBatch | None
    batches: Sequence[pa.RecordBatch]
    until: datetime
    is_full: bool = False

    @property
    def all(self) -> Iterator[pa.RecordBatch]:
        """The newest first."""
        yield from reversed(self.batches)
        if self.before is not None:
            yield self.before


def _leading(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: datetime,
    end: datetime | None,
    newest_before: bool,
    share: float = 1,
) -> _Leading:
    first, last = (microseconds(bound) if bound else None for bound in (start, end))
    assert first is not None
    if (last is not None and last <= first) or not are_there(connection, table):
        return _Leading(None, [], start)
    before = None
    given: list[pa.RecordBatch] = []
    at = first
    found = blocks(connection, table, columns, first - newest_before, last, share)
    is_full = found.reached is not None
    for block in found.blocks:
        if block.begins > at:
            is_full = False
            break
        if block.rows is not None:
            if newest_before and block.begins < first:
                earlier = _within(block.rows, None, first)
                before = earlier.slice(earlier.num_rows - 1) if earlier.num_rows else before
            outside = first > block.begins or (last is not None and last < block.ends)
            given.append(_within(block.rows, first, last) if outside else block.rows)
        at = max(at, block.ends)
    until = moment_of(at if last is None else min(at, last))
    return _Leading(before, [*_gathered(given)], until, is_full and bool(given))


def _gathered(parts: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, merged into larger ones."""
    together: list[pa.RecordBatch] = []
    size = 0
    for part in parts:
        together.append(part)
        size += part.nbytes
        if size > _ENOUGH:
            yield _merged(together)
            together, size = [], 0
    if together:
        yield _merged(together)


def _pieces(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: datetime | None,
    end: datetime | None,
    tiers: "_Tiers",
    limit: int | None,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The parts to read, in order: PostgreSQL's, and the cold weeks'."""
    # single rows are found faster than their blocks
    is_closed = tiers.are_worth(start, end) and (limit is None or limit > _FEW)
    hot = partial(_closed if is_closed else _hot, columns=columns)
    weeks = [week for week in tiers.weeks if start is None or week.ends > start]
    if not weeks:
        yield hot(connection, table, start=start, end=end, limit=limit)
        return
    at = start
    for week in weeks:
        if at is None or at < week.begins:
            yield hot(connection, table, start=at, end=week.begins, limit=limit)
        first = week.begins if at is None else max(at, week.begins)
        at = week.ends if end is None else min(week.ends, end)
        yield _cold(connection, table, columns, week, first, at, limit)
    if end is None or at is None or at < end:
        yield hot(connection, table, start=at, end=end, limit=limit)


@dataclass(frozen=True)
class WeekFile:
    begins: datetime
    ends: datetime
    folder: str
    file: str
    rows: int
    footer: str

    def read(
        self, columns: Sequence[str], start: datetime | None, end: datetime | None, number: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of its file, of samples those of the signal `number`. Raises Damaged."""
        folder = Folder(self.folder)
        return read_file(folder, self.file, columns, start, end, footer=self.footer, number=number)


def count_cold(
    connection: Connection, table: str, start: datetime, end: datetime, number: int | None = None
) -> int:
    """The number of rows from `start` on and before `end` that are in files, of samples those of the signal
    `number`. Raises ReadError, Damaged."""
    n = 0
    for week in _tiers(connection, table, end).weeks:
        if start <= week.begins and week.ends <= end and number is None:
            n += week.rows
        elif week.ends > start:
            n += sum(batch.num_rows for batch in week.read(["time"], start, end, number))
    return n


@dataclass(frozen=True)
class _Tiers:
    """Where a table's rows outside its partitions are: cold weeks, and closed rows."""

    weeks: Sequence[WeekFile]
    closed_until: datetime | None
    """end of the last closed rows; None without any that the reader may read"""

    def are_worth(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether closed rows can cover enough of this time to look for them."""
        if self.closed_until is None:
            return False
        if start is None:
            return True
        if start >= self.closed_until:
            return False
        part = self.closed_until - start
        return part >= _SHORT or (end is not None and 2 * part >= end - start)


_TIERS = sql_file(__file__, "reading_tiers")


def _tiers(connection: Connection, table: str, end: datetime | None) -> _Tiers:
    """The cold weeks that begin before `end`, and whether there are closed rows."""
    text = sql.SQL(_TIERS).format(
        table=sql.Literal(table),
        is_closed=sql.Literal(are_there(connection, table)),
        end=_moment(end, "infinity"),
    )
    found = records(connection, text)
    until = found[0].pop("until")
    weeks = [
        WeekFile(**{name: row[name] for name in row if name != "until"}) for row in found if row["begins"]
    ]
    return _Tiers(weeks, until)


def _closed(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: datetime | None,
    end: datetime | None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """As `_hot`: closed rows from columns, the others as rows."""
    first, last = (None if bound is None else microseconds(bound) for bound in (start, end))
    at = look = first
    left = limit
    given = False
    times = 1
    while True:
        found = blocks(connection, table, columns, look, last, times)
        # blocks without one of the columns are hardly read
        times = 1 if found.blocks else min(8 * times, _MOST)
        together: list[pa.RecordBatch] = []
        size = 0
        # a bound behind the last block, without rows
        for block in [*found.blocks, None]:
            is_gap = block is not None and (at is None or at < block.begins)
            if together and (block is None or is_gap or size > _ENOUGH):
                batch = _merged(together)
                yield batch
                given, together, size = True, [], 0
                left = None if left is None else left - batch.num_rows
            if left is not None and left <= 0:
                return
            if block is None:
                break
            if is_gap:
                since = None if at is None else moment_of(at)
                for batch in _hot(connection, table, columns, since, moment_of(block.begins), left):
                    yield batch
                    given = True
                    left = None if left is None else left - batch.num_rows
            at = block.ends
            if block.rows is not None:
                outside = (first or at) > block.begins or (last or at) < at
                together.append(_within(block.rows, first, last) if outside else block.rows)
                size += together[-1].nbytes
        if found.reached is None:
            break
        look = found.reached
    if last is None or at is None or at < last:
        yield from _hot(connection, table, columns, None if at is None else moment_of(at), end, left)
    elif not given:
        # an empty batch with the types of the columns
        yield from _hot(connection, table, columns, end, end)


def _merged(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    merged = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return merged[0] if merged else batches[0]


def _within(batch: pa.RecordBatch, start: int | None, end: int | None) -> pa.RecordBatch:
    """The rows from one time on and before another, in microseconds since 1970."""
    times = batch.column(0).view(pa.int64()).to_numpy()
    first = 0 if start is None else int(np.searchsorted(times, start))
    last = len(times) if end is None else int(np.searchsorted(times, end))
    return batch.slice(first, last - first)


def _hot(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    start: datetime | None,
    end: datetime | None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    if columns and start is not None and end is not None and start < end:
        pages = series(connection, table, columns, start, end, limit)
        if pages is not None:
            yield from pages
            return
    query = sql.SQL('{} order by "time", seq_no limit {}').format(
        _select(table, columns, start, end), sql.SQL("all") if limit is None else sql.Literal(limit)
    )
    yield from rows(connection, query)


def _cold(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    week: WeekFile,
    start: datetime,
    end: datetime,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a week's file, and its late rows in the log. Raises Damaged."""
    names = ["time", *dict.fromkeys([*columns, "seq_no"])]
    # the late rows are few, and reading them checks the reader's right
    late = pa.Table.from_batches(_hot(connection, table, names[1:], start, end))
    n = 0
    for batch in merged(week.read(names, start, end), late):
        yield batch.select(["time", *columns])
        n += batch.num_rows
        if limit is not None and n >= limit:
            return


def _newest_before(
    connection: Connection, table: str, columns: Sequence[str], start: datetime, weeks: Sequence[WeekFile]
) -> Iterator[pa.RecordBatch]:
    query = sql.SQL('{} order by "time" desc, seq_no desc limit 1').format(
        _select(table, columns, None, start)
    )
    newest = [batch for batch in rows(connection, query) if batch.num_rows]
    since = newest[0]["time"][0].as_py() if newest else None
    for week in reversed(weeks):
        if week.begins >= start or (since is not None and week.ends <= since):
            continue
        last = None
        for batch in _cold(connection, table, columns, week, week.begins, min(week.ends, start)):
            last = batch.slice(batch.num_rows - 1) if batch.num_rows else last
        if last is not None:
            newest = [last]
            break
    yield from newest


def _select(table: str, columns: Sequence[str], start: datetime | None, end: datetime | None) -> sql.Composed:
    # bounds in the text let the planner exclude partitions
    return sql.SQL('select {} from {} where "time" >= {} and "time" < {}').format(
        sql.SQL(", ").join(map(sql.Identifier, ["time", *columns])),
        _log(table),
        _moment(start, "-infinity"),
        _moment(end, "infinity"),
    )


def _moment(bound: datetime | None, otherwise: str) -> sql.Composable:
    return sql.SQL("timestamptz {}").format(sql.Literal(otherwise)) if bound is None else time_literal(bound)


def _log(table: str) -> sql.Identifier:
    return sql.Identifier(LOG_TABLES, table)
