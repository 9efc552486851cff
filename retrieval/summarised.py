"""Makes bins of samples from the log's summaries. Only this module decides which bins are exact.

Whole bins are spans of the longest level that divides their width; if none does, they are made of spans of
several levels and of the rows at their ends. Rows are read for the other bins: those at both ends, those
after the last summaries, those with late rows, and those with rows without a reading (the last row may be
one).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from ringlog.history.arrays import sent
from ringlog.history.closed import array, text_of, whole
from ringlog.history.connection import Connection, ReadError
from ringlog.history.signals import Location
from ringlog.history.summaries.blocks import figures_of, query_of
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.history.summaries.sample_spans import SEVERITY, filled
from ringlog.history.summaries.span_numbers import runs_of
from ringlog.history.summaries.spans import NAMES, Spans, combined, of_rows
from ringlog.retrieval.bins import SECOND, Bins, binned
from ringlog.retrieval.samples import INVALID, Column, Samples, columns_of, samples, within
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import Signal
from ringlog.schema.column_type import TYPES
from ringlog.schema.layout import BLOCK, EARLIEST, LOG_TABLES, SUMMARIES
from ringlog.schema.moments import MICROSECOND, microseconds, moment_of
from ringlog.schema.sql_files import sql_file

_RUNS = 16
"""Maximum number of intervals whose rows are read separately: with more, all rows are read."""
_MOST = 1_000_000
"""spans"""
_LEAST = 4
"""minimum number of shortest spans in a bin that is made of spans and rows"""
_MOST_ENDS = 5000
"""maximum number of such bins"""
_FOREVER = 2**62
"""seconds; longer than any span"""
_STEP = 6
"""minimum ratio of the lengths of two successive levels used for such bins"""

_STATE = sql_file(__file__, "summarised_state")

# the bounds of all leave partitions out
_ENDS = sql_file(__file__, "summarised_ends")


@dataclass(frozen=True)
class Summarised:
    """Makes bins from summaries, where possible."""

    location: Location
    samples: int
    """the bins have at least this number of samples"""
    bins: Iterator[Bins]


def summarised(
    servers: Servers,
    signal: Signal,
    start: datetime,
    end: datetime,
    width: int,
    moved: Callable[[Iterator[Samples], int], Iterator[Samples]],
    *,
    before: bool,
) -> Summarised | None:
    """The bins of `width` seconds of the samples from `start` to `end`, both included. With `before` they
    include the sample before `start`, which `moved` puts into the bin before the first. None if all rows must
    be read. Raises ReadError.
    """
    columns = [column for column in columns_of(servers, signal) if column.reaches(start, end)]
    column = _one(columns)
    if column is None or column.scalar is not None or not signal.is_number:
        return None
    step = width * SECOND
    # the first bin is made from rows, which show whether there is a sample at the start itself
    since, stop = within(column.location, max(start + MICROSECOND, EARLIEST), end + MICROSECOND)
    begin, until = -(-microseconds(since) // step), microseconds(stop) // step
    found_bins = _whole_bins(column, begin, until, width) if begin < until else None
    if found_bins is None:
        return None
    is_known, from_summaries, rows = found_bins
    unknown = [*runs_of(np.flatnonzero(~is_known) + begin)]
    if len(unknown) > _RUNS:
        return None

    def all_of_them() -> Iterator[Bins]:
        edge = samples(servers, signal, start, moment_of(begin * step), before=before)
        yield from binned(moved(edge, microseconds(start)), step)
        at = begin
        for first, last in [*unknown, (until, until)]:
            yield from_summaries.slice(*np.searchsorted(from_summaries.number, (at, first)).tolist())
            stop = end + MICROSECOND if first == until else moment_of(last * step)
            yield from binned(samples(servers, signal, moment_of(first * step), stop), step)
            at = last

    shown = column.shown
    if len(columns) > 1:
        # the unit of the first sample, as without summaries
        shown = next(
            (each.location for each in samples(servers, signal, start, end, before=before, limit=1)), shown
        )
    return Summarised(shown, rows, (each for each in all_of_them() if len(each)))


def _one(columns: Sequence[Column]) -> Column | None:
    """The column that has all samples; several of a table of samples are one that had another unit."""
    if not columns:
        return None
    first, last = columns[0].location, columns[-1].location
    together = all(
        location.is_of_samples
        and (location.table, location.column, location.since) == (first.table, first.column, before.until)
        for before, location in pairwise(column.location for column in columns)
    )
    return replace(columns[0], location=replace(first, until=last.until)) if together else None


def _whole_bins(
    column: Column, begin: int, until: int, width: int
) -> tuple[NDArray[np.bool_], Bins, int] | None:
    """A mask of the known bins from one number on and before another, the bins among them with samples, and
    their total number of samples."""
    connection, table = column.connection, column.location.table
    state = connection.answer(
        _STATE,
        table.encode(),
        sql.Identifier(SUMMARIES, table).as_string().encode(),
        sql.Identifier(LOG_TABLES, table).as_string().encode(),
        *(text_of(number * width * SECOND) for number in (begin, until)),
        column.location.column.encode(),
    )
    if not state.ntuples:
        return None
    summarised_until = whole(state.get_value(0, 0))
    stored, marked = (json.loads(state.get_value(0, number) or "[]") for number in (1, 2))
    whole_until, until = until, min(until, summarised_until // (width * SECOND))
    if begin >= until or not stored:
        return None
    are_rows = not column.location.is_of_samples
    severity = column.severity if are_rows else column.location.column + SEVERITY
    wanted = [column.location.column, *([] if severity is None else [severity])]
    levels = [level for level in stored if width % level == 0]
    if levels:
        level = levels[-1]
        factor = width // level
        if (until - begin) * factor > _MOST:
            return None
        numbers = np.arange(begin * factor, until * factor)
        spans, exists = _spans(connection, table, wanted, level, numbers, are_rows=are_rows)
        is_known = np.logical_and.reduce(exists.reshape(-1, factor), axis=1)
        per_bin = combined(spans, factor) if factor > 1 and len(spans) else spans
    else:
        tiled = _tiled(connection, table, wanted, stored, begin, until, width) if are_rows else None
        if tiled is None:
            return None
        per_bin, is_known = tiled
    marks = np.array(marked, np.int64) // (width * SECOND)
    is_known[marks[(marks >= begin) & (marks < until)] - begin] = False
    if not is_known.any() or not len(per_bin):
        return None
    # its last sample does not matter if the summaries show samples in the next bin
    follows = np.append(np.diff(per_bin.numbers) == 1, False)
    follows[:-1] &= is_known[per_bin.numbers[1:] - begin]
    kinds = (per_bin.n > 0).astype(int) + (per_bin.nans > 0) + (per_bin.nulls > 0)
    enough = (kinds == 1).all(axis=1) | follows
    is_known[per_bin.numbers[~enough] - begin] = False
    per_bin = per_bin.chosen(is_known[per_bin.numbers - begin])
    is_known = np.append(is_known, np.zeros(whole_until - until, bool))
    return is_known, _bins(per_bin), int(per_bin.rows[:, 0].sum())


def _tiled(
    connection: Connection,
    table: str,
    columns: list[str],
    stored: list[int],
    begin: int,
    until: int,
    width: int,
) -> tuple[Spans, NDArray[np.bool_]] | None:
    """The bins with samples, of a width that no level divides, and a mask of the known ones among all. Each
    is made of the shortest spans up to the first longer one, and so on, and of the rows at its ends outside
    whole spans. None if reading rows is as fast."""
    shortest = stored[0]
    if width < _LEAST * shortest or until - begin > _MOST_ENDS:
        return None
    levels = [shortest]
    for level in stored[1:]:
        if level % levels[-1] == 0 and _STEP * levels[-1] <= level <= width:
            levels.append(level)
    bounds = np.arange(begin, until + 1) * width
    low, high = -(-bounds[:-1] // shortest) * shortest, bounds[1:] // shortest * shortest
    # with the time of each as its number
    parts: list[Spans] = []
    is_known: NDArray[np.bool_] = np.ones(until - begin, bool)
    for level, longer in pairwise([*levels, _FOREVER]):
        first, last = -(-low // longer) * longer, high // longer * longer
        is_long = first < last
        first, last = np.where(is_long, first, high), np.where(is_long, last, high)
        wanted = _expanded(np.append(low, last) // level, np.append(first, high) // level)
        spans, exists = _spans(connection, table, columns, level, wanted, are_rows=True)
        is_known[wanted[~exists] * level // width - begin] = False
        parts.append(replace(spans, numbers=spans.numbers * level))
        low, high = first[is_long], last[is_long]
        if not len(low):
            break
    if not is_known.any():
        return None
    ends = bounds[bounds % shortest > 0] // shortest * shortest
    rows = _ends(connection, table, columns, ends, shortest, bounds[[0, -1]])
    if rows is None:
        return None
    of_row, values, nulls = rows
    if len(of_row):
        begins = of_row // (width * SECOND) * width
        # rows before a bin's end are not a whole span, nor are those after its begin
        is_last = of_row // (shortest * SECOND) * shortest + shortest > begins + width
        parts.append(of_rows(begins + is_last * (width - 1), values, nulls))
    together = Spans.together(parts)
    in_order = together.chosen(np.argsort(together.numbers, kind="stable"))
    return (combined(in_order, width) if len(together) else together), is_known


def _expanded(firsts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each first one on and before its end, in order."""
    many = ends - firsts
    numbers = np.repeat(firsts - np.cumsum(many) + many, many) + np.arange(many.sum())
    return np.sort(numbers, kind="stable")


def _ends(
    connection: Connection,
    table: str,
    columns: list[str],
    begins: NDArray[np.int64],
    length: int,
    bounds: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]] | None:
    """Times, values and a mask of nulls of the rows within the bounds in `length` seconds from each of these
    instants on. None if some rows may be in files, or past retention."""
    answer = connection.answer(
        _ends_of(table, (*columns,), length),
        _instants(begins),
        *(text_of(int(bound) * SECOND) for bound in bounds),
    )
    if whole(answer.get_value(0, 0)):
        return None
    content, *of_columns = (answer.get_value(0, index) or b"" for index in range(1, 2 + len(columns)))
    if not content:
        return np.empty(0, np.int64), np.empty((0, len(columns))), np.empty((0, len(columns)), bool)
    times = sent(content, "i8")[0] + POSTGRES_EPOCH
    if (times[1:] < times[:-1]).any():
        raise ReadError(f"the rows of {table} came out of their order", None)
    both = [sent(each, TYPES[int.from_bytes(each[8:12], "big")].octets) for each in of_columns]
    values = np.column_stack([numbers.astype(np.float64) for numbers, _ in both])
    none = np.zeros(len(times), bool)
    return times, values, np.column_stack([none if present is None else ~present for _, present in both])


def _spans(
    connection: Connection,
    table: str,
    columns: list[str],
    level: int,
    numbers: NDArray[np.int64],
    *,
    are_rows: bool,
) -> tuple[Spans, NDArray[np.bool_]]:
    """The spans with rows among these numbers, which are in order, and a mask of the spans for which this is
    known: spans without samples, and severities without an alarm, are known not to be stored."""
    length = BLOCK[level]
    block_of = numbers // length
    blocks = np.unique(block_of)
    begins = _instants(blocks * length * level)
    found = connection.answer(query_of(table), b"%d" % level, array(columns), begins)
    values, is_stored = figures_of(found, level, columns, blocks)
    positions = np.searchsorted(blocks, block_of) * length + numbers % length
    # pop frees the memory of each array for the next
    spans = Spans(numbers, *(values.pop(name)[positions] for name in NAMES))
    known = np.asarray(is_stored[positions].all(axis=1))
    if not are_rows:
        spans, known = filled(spans), np.ones_like(known)
    return spans.chosen(spans.have_rows & known), known


@cache
def _ends_of(table: str, columns: tuple[str, ...], length: int) -> str:
    names = [sql.Identifier(name) for name in columns]
    return (
        sql.SQL(_ENDS)
        .format(
            table=sql.Literal(table),
            arrays=sql.SQL(", ").join(sql.SQL("array_agg(came.{})").format(name) for name in names),
            columns=sql.SQL(", ").join(names),
            log=sql.Identifier(LOG_TABLES, table),
            length=sql.Literal(f"{length} seconds"),
        )
        .as_string()
    )


def _instants(seconds: NDArray[np.int64]) -> bytes:
    """An array of times since 1970, as PostgreSQL reads it."""
    return "{{{}}}".format(",".join(np.datetime_as_string(seconds.view("M8[s]"), timezone="UTC"))).encode()


def _bins(made: Spans) -> Bins:
    only_numbers = (made.nans[:, 0] == 0) & (made.nulls[:, 0] == 0)
    empty = (made.n[:, 0] == 0) & (made.nans[:, 0] == 0)
    alarm = severity = none = np.zeros(len(made), np.int64)
    if made.max.shape[1] > 1:
        # null means no severity
        alarm, severity = (np.nan_to_num(of[:, 1]).astype(np.int64) for of in (made.max, made.last))
        alarm = np.maximum(alarm, 0)
    return Bins.of_spans(
        made,
        first_time=none,
        last_time=none,
        alarm=alarm,
        held=np.where(only_numbers, made.last[:, 0], np.nan),
        held_severity=np.where(empty, INVALID, severity),
        held_empty=empty,
    )
