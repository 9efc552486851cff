"""Bins of samples made of the log's summaries: the one place that knows what is exact from them.

Whole bins are spans of the longest level that divides their width. Rows are read for the rest: the bins of
both ends, those after the last summaries, those for which rows have come late, and those of which summaries
do not say enough (some of their rows have no reading: the last one may be such a row).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from psycopg import sql

from ringlog.history.closed import moment_of
from ringlog.history.connection import Connection, records, table_of
from ringlog.history.signals import Place
from ringlog.history.spans import NAMES, Spans, combined
from ringlog.retrieval.bins import SECOND, Bins, binned
from ringlog.retrieval.samples import (
    INVALID,
    MICROSECOND,
    Column,
    Samples,
    columns_of,
    microseconds,
    samples,
)
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.texts import moment
from ringlog.schema.partitions import EARLIEST
from ringlog.schema.roles import SUMMARIES
from ringlog.schema.summaries import BLOCK

_RUNS = 16
"""Times to read rows for: with more of them all are read."""
_MOST = 1_000_000
"""spans"""

_STATE = """
select
  (extract(epoch from summarised.until) * 1000000)::bigint as until,
  to_json(summarised.levels)::text as levels,
  (
    select json_agg(distinct (extract(epoch from mark."time") * 1000000)::bigint)
    from ringlog.summary_mark as mark
    where mark.table_name = {table} and mark."time" >= {start} and mark."time" < {end}
  )::text as marks
from ringlog.summarised
where summarised.table_name = {table} and summarised.until is not null
  -- who may read all of both
  and has_table_privilege(to_regclass({summary}), 'select')
  and not row_security_active({log}::regclass)
"""


@dataclass(frozen=True)
class Summarised:
    """Bins that are made of summaries, as far as they can be."""

    place: Place
    samples: int
    """they have at least so many"""
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
    """The bins of `width` seconds of the samples from `start` to `end`, both included. With `before` the
    sample before `start` is one of them, which `moved` puts into the bin before the first. None where rows
    have to be read for all of them. Raises ReadError.
    """
    found = [column for column in columns_of(servers, signal) if column.reaches(start, end)]
    if len(found) != 1 or found[0].scalar is not None or not signal.is_number:
        return None
    (column,) = found
    # the first bin is of rows: they say whether there is a sample at the start itself
    begin = microseconds(start) // (width * SECOND) + 1
    until = (microseconds(end) + 1) // (width * SECOND)
    for bound, later in ((column.place.since, True), (column.place.until, False)):
        if bound is not None and later:
            begin = max(begin, -(-microseconds(bound) // (width * SECOND)))
        elif bound is not None:
            until = min(until, microseconds(bound) // (width * SECOND))
    begin = max(begin, -(-microseconds(EARLIEST) // (width * SECOND)))
    if begin >= until:
        return None
    whole = _whole_bins(column, begin, until, width)
    if whole is None:
        return None
    known, made, rows = whole
    unknown = _runs(np.flatnonzero(~known) + begin)
    if len(unknown) > _RUNS:
        return None

    def read(first: int, last: int) -> Iterator[Bins]:
        """Of rows, from one bin on and before another."""
        span = (moment_of(number * width * SECOND) for number in (first, last))
        return binned(samples(servers, signal, *span), width * SECOND)

    def parts() -> Iterator[Bins]:
        at = begin
        for first, last in [*unknown, (until, until)]:
            if at < first:
                yield made.slice(*np.searchsorted(made.number, (at, first)).tolist())
            if first < last:
                yield from read(first, last)
            at = last

    def all_of_them() -> Iterator[Bins]:
        first, last = (moment_of(number * width * SECOND) for number in (begin, until))
        edge = samples(servers, signal, start, first, before=before)
        yield from binned(moved(edge, microseconds(start)), width * SECOND)
        yield from parts()
        yield from binned(samples(servers, signal, last, end + MICROSECOND), width * SECOND)

    return Summarised(column.shown, rows, (each for each in all_of_them() if len(each)))


def _runs(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Numbers that follow each other, as first and after the last."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def _whole_bins(
    column: Column, begin: int, until: int, width: int
) -> tuple[NDArray[np.bool_], Bins, int] | None:
    """Which of the bins from one number on and before another are known, those of them that have samples, and
    how many these have together."""
    connection, table = column.connection, column.place.table
    names = {
        "table": sql.Literal(table),
        "summary": sql.Literal(sql.Identifier(SUMMARIES, table).as_string()),
        "log": sql.Literal(sql.Identifier("log", table).as_string()),
        "start": moment(moment_of(begin * width * SECOND)),
        "end": moment(moment_of(until * width * SECOND)),
    }
    state = records(connection, sql.SQL(_STATE).format(**names))
    if not state:
        return None
    levels = [level for level in json.loads(state[0]["levels"]) if width % level == 0]
    if not levels or (until - begin) * width // levels[-1] > _MOST:
        return None
    level = levels[-1]
    factor = width // level
    wanted = [column.place.column, *([] if column.severity is None else [column.severity])]
    spans, there = _spans(connection, table, wanted, level, begin * factor, until * factor)
    known = there.reshape(-1, factor).all(axis=1)
    known &= (np.arange(begin, until) + 1) * width * SECOND <= state[0]["until"]
    marks = np.array(json.loads(state[0]["marks"] or "[]"), np.int64) // (width * SECOND)
    known[marks[(marks >= begin) & (marks < until)] - begin] = False
    if not known.any() or not len(spans):
        return None
    made = combined(spans, factor)
    # its last sample does not matter where the bin after it has some, as summaries say
    follows = np.append(np.diff(made.numbers) == 1, False)
    follows[:-1] &= known[made.numbers[1:] - begin]
    kinds = (made.n > 0).astype(int) + (made.nans > 0) + (made.nulls > 0)
    enough = (kinds == 1).all(axis=1) | follows
    known[made.numbers[~enough] - begin] = False
    made = made.chosen(known[made.numbers - begin])
    return known, _bins(made), int((made.n + made.nans + made.nulls)[:, 0].sum())


def _spans(
    connection: Connection, table: str, columns: list[str], level: int, begin: int, until: int
) -> tuple[Spans, NDArray[np.bool_]]:
    """The spans with rows, and of which of all spans from one number on and before another it is known
    whether they have some."""
    length = BLOCK[level]
    first = begin // length
    shape = ((until - 1) // length - first + 1) * length, len(columns)
    values: dict[str, Any] = {
        name: np.zeros(shape, np.int64 if name in ("n", "nans", "nulls") else float) for name in NAMES
    }
    there = np.zeros(shape, bool)
    text = sql.SQL(
        "select column_name, begins, {} from {} where level = {} and column_name = any({})"
        " and begins >= {} and begins < {}"
    ).format(
        sql.SQL(", ").join(map(sql.Identifier, NAMES)),
        sql.Identifier(SUMMARIES, table),
        sql.Literal(level),
        sql.Literal(columns),
        moment(moment_of(first * length * level * SECOND)),
        moment(moment_of(until * level * SECOND)),
    )
    found = table_of(connection, text).combine_chunks()
    begins = found.column("begins").cast(pa.int64()).to_numpy() // (level * SECOND) - first * length
    places = np.array([columns.index(name) for name in found.column("column_name").to_pylist()], np.int64)
    spans_of = begins[:, None] + np.arange(length)
    there[spans_of, places[:, None]] = True
    for figure in NAMES:
        arrays = found.column(figure).combine_chunks()
        some = arrays.is_valid().to_numpy(zero_copy_only=False)
        flat = arrays.flatten().to_numpy(zero_copy_only=False).reshape(-1, length)
        values[figure][spans_of[some], places[some, None]] = flat
    numbers = np.arange(first * length, first * length + shape[0])
    spans = Spans(numbers, **values)
    inside = (numbers >= begin) & (numbers < until)
    with_rows = (spans.n + spans.nans + spans.nulls).any(axis=1)
    of_all = np.logical_and.reduce(there, axis=1)
    return spans.chosen(inside & with_rows & of_all), of_all[inside]


def _bins(made: Spans) -> Bins:
    n = made.n[:, 0]
    only_numbers = (made.nans[:, 0] == 0) & (made.nulls[:, 0] == 0)
    empty = (n == 0) & (made.nans[:, 0] == 0)
    none = np.zeros(len(n), np.int64)
    alarm = severity = none
    if made.max.shape[1] > 1:
        # a severity that is null is none
        alarm, severity = (np.nan_to_num(of[:, 1]).astype(np.int64) for of in (made.max, made.last))
        alarm = np.maximum(alarm, 0)
    return Bins(
        number=made.numbers,
        n=n,
        mean=made.mean[:, 0],
        squares=np.where(n > 0, made.squares[:, 0], 0.0),
        low=made.min[:, 0],
        high=made.max[:, 0],
        first=made.first[:, 0],
        last=made.last[:, 0],
        first_time=none,
        last_time=none,
        alarm=alarm,
        held=np.where(only_numbers, made.last[:, 0], np.nan),
        held_severity=np.where(empty, INVALID, severity),
        empty=empty,
        held_empty=empty,
    )
