"""Makes spans from rows of the log and of the archive, and longer spans from shorter ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import psycopg
from psycopg import sql

from ringlog.history.summaries import sample_spans, waveforms
from ringlog.history.summaries.copying import copied, copied_waveforms
from ringlog.history.summaries.span_numbers import grouped, number_at, runs_of
from ringlog.history.summaries.spans import Spans, combined, of_rows
from ringlog.history.summaries.summary_table import SummaryTable, reached
from ringlog.schema.layout import BLOCK, LOG_TABLES
from ringlog.schema.moments import EPOCH

if TYPE_CHECKING:
    import pyarrow as pa

VALUES = 1_000_000
"""approximate number of values in memory at once"""

NEAR = 100
"""The most values between two spans that are read with them."""


def enter_spans(connection: psycopg.Connection, table: SummaryTable, parts: Iterable[Spans]) -> None:
    """Stores the shortest spans of rows that enter the archive without the log, in place of existing ones,
    and makes the longer ones, up to the end of the summaries. The caller has the lock of summaries."""
    until = reached(connection, table.name)
    shortest, *longer = table.levels
    changed, made = [], []
    waiting: list[Spans] = []
    # those that are whole in a block of the shortest need not read it again
    whole_until = until if longer and BLOCK[shortest] * shortest % longer[0] == 0 else None
    for spans in parts:
        stored = table.store(connection, shortest, spans)
        changed.append(spans.numbers)
        if whole_until is not None:
            factor = longer[0] // shortest
            over = number_at(whole_until, longer[0])
            numbers = spans.numbers // factor
            of_part = combined(stored, factor)
            waiting.append(of_part.chosen(np.isin(of_part.numbers, numbers[numbers < over])))
            if sum(map(len, waiting)) * len(table.columns) > VALUES:
                made.append(_stored_together(connection, table, longer[0], waiting))
                waiting = []
    if any(map(len, waiting)):
        made.append(_stored_together(connection, table, longer[0], waiting))
    if changed and until is not None:
        numbers_of = {longer[0]: np.unique(np.concatenate(made))} if made else {}
        _make_longer(connection, table, np.unique(np.concatenate(changed)), None, until, numbers_of)


def spans_of(table: SummaryTable, batch: "pa.RecordBatch") -> Spans:
    """The shortest spans of a batch of the log's rows, ordered by time."""
    numbers = batch["time"].cast("int64").to_numpy() // (table.levels[0] * 1_000_000)
    return of_rows(numbers, *_scalars(table, batch))


def _stored_together(
    connection: psycopg.Connection, table: SummaryTable, level: int, parts: Sequence[Spans]
) -> np.ndarray:
    """Stores spans. Returns their numbers."""
    spans = Spans.together(parts)
    table.store(connection, level, spans)
    return spans.numbers


def make_part(
    connection: psycopg.Connection,
    table: SummaryTable,
    marked: np.ndarray,
    first: int,
    last: int,
    earlier: datetime | None,
    end: datetime,
) -> int:
    """Makes the spans from `first` to before `last`, and the marked ones. Returns the number of rows read."""
    level = table.levels[0]
    rows = 0
    changed: list[np.ndarray] = [marked]
    # nearby runs are joined: reading the spans between them takes less time than another run
    near = int(NEAR / len(table.columns) * table.cycle / level)
    damaged = [(number_at(week.start, level), number_at(week.end, level)) for week in table.damaged]
    cold = sorted([*_cold(connection, table), *damaged])
    runs = [run for each in runs_of(marked, max(1, near)) for run in _outside_archive(cold, *each)]
    most = _spans_at_once(table)
    for part in grouped([*runs, *_outside_archive(cold, first, last)], most):
        while part:
            count, spans = _of_the_log(
                connection, table, [(start, min(stop, start + most)) for start, stop in part]
            )
            rows += count
            if spans is not None:
                spans = _that_are_whole(connection, table, spans)
                table.store(connection, level, spans)
                changed.append(spans.numbers)
            # an imported year is one run
            part = [(start + most, stop) for start, stop in part if stop - start > most]
            if part and spans is None:  # two rows may be years apart
                ((after, stop),) = part
                at, past = (EPOCH + timedelta(seconds=number * level) for number in (after, stop))
                following = oldest(connection, table, at, past)
                part = [] if following is None else [(max(after, number_at(following, level)), stop)]
    _make_longer(connection, table, np.unique(np.concatenate(changed)), earlier, end)
    return rows


def _that_are_whole(connection: psycopg.Connection, table: SummaryTable, spans: Spans) -> Spans:
    """Spans without those whose summaries cannot be made again, because their rows were dropped past
    retention; late rows of that time have no week any more."""
    level = table.levels[0]
    begin, last = (EPOCH + timedelta(seconds=int(spans.numbers[at]) * level) for at in (0, -1))
    gone = np.empty(0, np.int64)
    if table.dropped_until is not None and begin < table.dropped_until:
        gone = spans.numbers[spans.numbers < number_at(table.dropped_until, level)]
    if begin < table.kept_from:
        query = sql.SQL(
            "select distinct floor(extract(epoch from time) * 1000000 / %s)::bigint / 1000000"
            " from {} where time >= %s and time < %s"
        ).format(sql.Identifier("log", f"{table.name}_default"))
        end = min(last + timedelta(seconds=level), table.kept_from)
        alone = [number for (number,) in connection.execute(query, [level, begin, end])]
        gone = np.union1d(gone, np.array(alone, np.int64))
    if not len(gone):
        return spans
    made = table.read(connection, level, gone)
    return spans.chosen(~np.isin(spans.numbers, made.numbers))


def _cold(connection: psycopg.Connection, table: SummaryTable) -> list[tuple[int, int]]:
    """The spans with rows in the archive: the log has only late rows of them."""
    weeks = connection.execute(
        "select begins, ends from ringlog.cold_week"
        " where table_name = %s and recalled_until is null and rows > 0 order by begins",
        [table.name],
    ).fetchall()
    level = table.levels[0]
    return [(number_at(begins, level), number_at(ends, level)) for begins, ends in weeks]


def _outside_archive(cold: Iterable[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The parts of these spans outside the archive."""
    for start, stop in cold:
        if first < min(start, last):
            yield first, min(start, last)
        first = max(first, stop)
    if first < last:
        yield first, last


def _make_longer(
    connection: psycopg.Connection,
    table: SummaryTable,
    changed: np.ndarray,
    earlier: datetime | None,
    end: datetime,
    made: Mapping[int, np.ndarray] = MappingProxyType({}),
) -> None:
    """The longer spans that have changed or are over, each made from the longest possible shorter spans.

    `earlier` is the end of the spans made before; None: there are none. `made` has the numbers of those that
    are made already, by their level.
    """
    numbers_of = {table.levels[0]: changed, **made}
    for level in [each for each in table.levels[1:] if each not in made]:
        shorter = max(each for each in numbers_of if level % each == 0)
        factor = level // shorter
        numbers = np.unique(numbers_of[shorter] // factor)
        if earlier is not None:
            # of the spans that were begun before `earlier` only one can have ended
            numbers = np.union1d(numbers, [number_at(earlier, level)])
        numbers = numbers[(numbers + 1) * level <= (end - EPOCH).total_seconds()]
        numbers_of[level] = numbers
        for part in np.array_split(numbers, max(1, len(numbers) * factor * len(table.columns) // VALUES)):
            if not len(part):
                continue
            parts = (part[:, None] * factor + np.arange(factor)).reshape(-1)
            spans = table.read(connection, shorter, parts)
            if len(spans):
                table.store(connection, level, combined(spans, factor))


def _of_the_log(
    connection: psycopg.Connection, table: SummaryTable, runs: Sequence[tuple[int, int]]
) -> tuple[int, Spans | None]:
    """Rows and spans of the log for runs of spans, each from one number on and before another."""
    level = table.levels[0]
    bounds = [[EPOCH + timedelta(seconds=run[end] * level) for run in runs] for end in (0, 1)]
    if table.signals is not None:
        of_runs = (
            sample_spans.of_blocks(connection, table.name, table.signals, *run)
            for run in zip(*bounds, strict=True)
        )
        return sample_spans.spans_of(chain.from_iterable(of_runs), table.signals, level)
    log = sql.Identifier(LOG_TABLES, table.name)
    within = sql.SQL('select logged.* from {} as logged where logged."time" >= {} and logged."time" < {}')
    if len(runs) == 1:
        # constants let the planner exclude the other weeks
        rows = within.format(log, *(sql.Literal(bound) for (bound,) in bounds))
    else:
        rows = sql.SQL(
            "select came.* from unnest({}::timestamptz[], {}::timestamptz[]) as run (start, stop)"
            # offset 0 makes the planner go from run to run
            " cross join lateral ({} offset 0) as came"
        ).format(
            *(sql.Literal(each) for each in bounds),
            within.format(log, sql.Identifier("run", "start"), sql.Identifier("run", "stop")),
        )

    def of(columns: Iterable[str]) -> sql.Composed:
        return sql.SQL('select {} from ({}) as came order by came."time", came.seq_no').format(
            sql.SQL(", ").join(sql.Identifier("came", column) for column in columns), rows
        )

    times, values, nulls = copied(connection, of(["time", *table.numbers]), [*table.numbers.values()])
    if not len(times):
        return 0, None
    # row by row, because the waveforms of one span may exceed the memory
    scalars = [
        waveforms.of_rows(copied_waveforms(connection, of([column]), kind))
        for column, kind in table.waveforms.items()
    ]
    numbers = times // (level * 1_000_000)
    return len(times), of_rows(numbers, *_side_by_side([(values, nulls), *scalars]))


def make_cold(
    connection: psycopg.Connection,
    conninfo: str,
    table: SummaryTable,
    runs: Iterable[tuple[int, int]],
    end: datetime,
) -> int:
    """Makes runs of spans of a week in the archive. Returns the number of rows read."""
    rows = 0
    changed = [np.empty(0, np.int64)]
    at_once = _spans_at_once(table)
    for start, stop in runs:
        for first in range(start, stop, at_once):
            count, spans = _of_all_tiers(conninfo, table, first, min(stop, first + at_once))
            rows += count
            if spans is not None:
                table.store(connection, table.levels[0], spans)
                changed.append(spans.numbers)
    _make_longer(connection, table, np.unique(np.concatenate(changed)), end, end)
    return rows


def _spans_at_once(table: SummaryTable) -> int:
    return max(1, int(VALUES / len(table.columns) * table.cycle / table.levels[0]))


def _of_all_tiers(conninfo: str, table: SummaryTable, start: int, stop: int) -> tuple[int, Spans | None]:
    """As _of_the_log, including the rows in the archive."""
    from ringlog.history import sampled
    from ringlog.history.reading import read

    level = table.levels[0]
    times, parts = [], []
    bounds = [EPOCH + timedelta(seconds=number * level) for number in (start, stop)]
    if table.signals is not None:
        batches = sampled.every(conninfo, table.name, table.signals, *bounds)
        return sample_spans.spans_of(map(sample_spans.of_batch, batches), table.signals, level)
    for batch in read(conninfo, table.name, [*table.numbers, *table.waveforms], *bounds):
        times.append(batch["time"].cast("int64").to_numpy())
        parts.append(_scalars(table, batch))
    if not any(map(len, times)):
        return 0, None
    every = np.concatenate(times)
    return len(every), of_rows(
        every // (level * 1_000_000), *(np.concatenate(each) for each in zip(*parts, strict=True))
    )


def _scalars(table: SummaryTable, batch: "pa.RecordBatch") -> waveforms.Scalars:
    """The summarised values of a batch's rows, and the mask of the nulls."""
    if not table.waveforms and not any(batch[name].null_count for name in table.numbers):
        numbers = np.empty((batch.num_rows, len(table.numbers)), order="F")
        for index, name in enumerate(table.numbers):
            numbers[:, index] = batch[name].to_numpy(zero_copy_only=False)
        return numbers, np.zeros(numbers.shape, bool)
    columns = [batch[name].cast("float64", safe=False) for name in table.numbers]
    values = [column.to_numpy(zero_copy_only=False)[:, None] for column in columns]
    nulls = [column.is_null().to_numpy(zero_copy_only=False)[:, None] for column in columns]
    scalars = [waveforms.of_lists(batch[name]) for name in table.waveforms]
    return _side_by_side([*zip(values, nulls, strict=True), *scalars])


def _side_by_side(columns: list[waveforms.Scalars]) -> waveforms.Scalars:
    """Values and the mask of the nulls of some columns, extended to all columns."""
    values, nulls = zip(*columns, strict=True)
    return np.concatenate(values, axis=1), np.concatenate(nulls, axis=1)


def oldest(
    connection: psycopg.Connection, table: SummaryTable, since: datetime, end: datetime
) -> datetime | None:
    """The time of the first row from `since` on and before `end`, at most in the year 9999, where Python's
    times end. An unreadable week counts as one with rows."""
    for week in table.damaged:
        if since < week.end and week.start < end:
            start = max(since, week.start)
            return (
                oldest(connection, replace(table, damaged=()), since, start) if since < start else None
            ) or start
    query = sql.SQL(
        'select "time" from {} where "time" >= {} and "time" < {} order by "time" limit 1'
    ).format(sql.Identifier(LOG_TABLES, table.name), sql.Literal(since), sql.Literal(end))
    found = connection.execute(query).fetchone()
    return found[0] if found else None
