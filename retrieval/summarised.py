"""Bins of samples made of the log's summaries: the one place that knows what is exact from them.

Whole bins are spans of the longest level that divides their width. Rows are read for the rest: the bins of
both ends, those after the last summaries, those for which rows have come late, and those of which summaries
do not say enough (some of their rows have no reading: the last one may be such a row).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from ringlog.history.arrays import HEAD
from ringlog.history.closed import array, moment_of, text_of, whole
from ringlog.history.connection import Connection
from ringlog.history.copying import POSTGRES_EPOCH
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
from ringlog.schema.partitions import EARLIEST
from ringlog.schema.roles import SUMMARIES
from ringlog.schema.summaries import BLOCK

_RUNS = 16
"""Times to read rows for: with more of them all are read."""
_MOST = 1_000_000
"""spans"""

_STATE = """
select
  (extract(epoch from summarised.until) * 1000000)::bigint,
  to_json(summarised.levels)::text,
  (
    select json_agg(distinct (extract(epoch from mark."time") * 1000000)::bigint)
    from ringlog.summary_mark as mark
    where mark.table_name = $1 and mark."time" >= $4::timestamptz and mark."time" < $5::timestamptz
  )::text
from ringlog.summarised
where summarised.table_name = $1 and summarised.until is not null
  -- who may read all of both
  and has_table_privilege(to_regclass($2), 'select')
  and not row_security_active(to_regclass($3))
"""

_SPANS = """
select column_name, begins, {figures} from {summary}
where level = $1 and column_name = any($2) and begins >= $3 and begins < $4
"""

_ELEMENTS = {23: ">i4", 700: ">f4", 701: ">f8"}
"""of arrays, by their numbers in pg_type.dat"""


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
    found_bins = _whole_bins(column, begin, until, width)
    if found_bins is None:
        return None
    known, made, rows = found_bins
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
    state = connection.answer(
        _STATE,
        table.encode(),
        sql.Identifier(SUMMARIES, table).as_string().encode(),
        sql.Identifier("log", table).as_string().encode(),
        *(text_of(number * width * SECOND) for number in (begin, until)),
    )
    if not state.ntuples:
        return None
    summarised_until = whole(state.get_value(0, 0))
    stored, marked = (json.loads(state.get_value(0, place) or "[]") for place in (1, 2))
    levels = [level for level in stored if width % level == 0]
    if not levels or (until - begin) * width // levels[-1] > _MOST:
        return None
    level = levels[-1]
    factor = width // level
    wanted = [column.place.column, *([] if column.severity is None else [column.severity])]
    spans, there = _spans(connection, table, wanted, level, begin * factor, until * factor)
    known = there.reshape(-1, factor).all(axis=1)
    known &= (np.arange(begin, until) + 1) * width * SECOND <= summarised_until
    marks = np.array(marked, np.int64) // (width * SECOND)
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
    found = connection.answer(
        _spans_of(table),
        b"%d" % level,
        array(columns),
        text_of(first * length * level * SECOND),
        text_of(until * level * SECOND),
    )
    rows = range(found.ntuples)
    begins = np.array([whole(found.get_value(row, 1)) for row in rows], np.int64) + POSTGRES_EPOCH
    spans_of = (begins // (level * SECOND) - first * length)[:, None] + np.arange(length)
    places = np.array([columns.index((found.get_value(row, 0) or b"").decode()) for row in rows], np.int64)
    there[spans_of, places[:, None]] = True
    for place, figure in enumerate(NAMES):
        contents = [found.get_value(row, 2 + place) for row in rows]
        some = np.array([content is not None for content in contents], bool)
        values[figure][spans_of[some], places[some, None]] = _arrays([*filter(None, contents)], length)
    numbers = np.arange(first * length, first * length + shape[0])
    spans = Spans(numbers, **values)
    inside = (numbers >= begin) & (numbers < until)
    with_rows = (spans.n + spans.nans + spans.nulls).any(axis=1)
    of_all = np.logical_and.reduce(there, axis=1)
    return spans.chosen(inside & with_rows & of_all), of_all[inside]


@cache
def _spans_of(table: str) -> str:
    figures = sql.SQL(", ").join(map(sql.Identifier, NAMES))
    return sql.SQL(_SPANS).format(figures=figures, summary=sql.Identifier(SUMMARIES, table)).as_string()


def _arrays(contents: list[bytes], length: int) -> NDArray[Any]:
    """Arrays of one type and `length` without nulls, as array_send has them, a row each."""
    if not contents:
        return np.empty((0, length))
    element = np.dtype([("length", ">i4"), ("value", _ELEMENTS[int.from_bytes(contents[0][8:12], "big")])])
    of_one = np.dtype([("head", f"V{HEAD}"), ("values", element, (length,))])
    return np.frombuffer(b"".join(contents), of_one)["values"]["value"]


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
