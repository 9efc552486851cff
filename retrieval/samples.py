"""Samples of one signal over time, from all columns that have stored it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from ringlog.history import sampled
from ringlog.history.connection import Connection, records, time_literal
from ringlog.history.reading import count_cold, newest, picked, read
from ringlog.history.signals import Place, places
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import Signal, reduced, shown_type, waveform_of
from ringlog.retrieval.texts import query
from ringlog.schema.alarms import SEVERITIES, STATUSES, number_of
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import nanoseconds_of
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.moments import MICROSECOND, microseconds, moment_of

INVALID = SEVERITIES.index("INVALID")
_FEW_IN_A_BIN = 64
"""up to this number, reading all samples is as fast as finding one"""
_MOST_BINS = 20_000
_FOREVER = datetime.max.replace(tzinfo=UTC)


Whole = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Samples:
    """Some samples of one place, oldest first. A null value is a row without a reading; NaN is a reading."""

    place: Place
    time: Whole
    """microseconds since 1970-01-01 UTC"""
    values: pa.Array
    nanos: Whole | None = None
    """the part below a microsecond, in nanoseconds; None: 0"""
    severity: Whole | None = None
    """of the alarm recorded with a sample, with EPICS's numbers; None: no alarm"""
    status: Whole | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def nanoseconds(self) -> Whole:
        """Times since 1970-01-01 UTC."""
        return self.time * 1000 if self.nanos is None else self.time * 1000 + self.nanos

    def slice(self, start: int, end: int) -> "Samples":
        return self._cut(slice(start, end), self.values.slice(start, end - start))

    def at(self, chosen: Whole) -> "Samples":
        """The samples at these indexes."""
        return self._cut(chosen, self.values.take(pa.array(chosen)))

    def _cut(self, which: Any, values: pa.Array) -> "Samples":
        others = (self.nanos, self.severity, self.status)
        return Samples(
            self.place, self.time[which], values, *(None if one is None else one[which] for one in others)
        )

    @property
    def missing(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """A mask of the samples without a reading."""
        return np.asarray(self.values.is_null(), bool)

    @property
    def severities(self) -> Whole | None:
        """The severity of each: INVALID for a sample without a reading. None if no sample has a severity."""
        missing = self.missing
        if self.severity is None and not missing.any():
            return None
        given = np.zeros(len(self), np.int64) if self.severity is None else self.severity
        return np.where(missing, INVALID, given)

    @property
    def numbers(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The values as float64, NaN for a missing reading."""
        values = self.values
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def samples(
    servers: Servers,
    signal: Signal,
    start: datetime,
    end: datetime,
    *,
    before: bool = False,
    limit: int | None = None,
) -> Iterator[Samples]:
    """The samples of a signal from `start` on and before `end`, at most `limit`.

    With `before` the newest sample before `start` comes first, if it exists and there is none at `start`
    itself: the Archiver Appliance sends the last event "at or before the given start time"
    (ParquetBackedPBEventFileStream; FileBackedPBEventStream seeks the same). `limit` does not count it.
    Raises ReadError.
    """
    known = columns_of(servers, signal)
    # if one column has all of them it is read with the others
    is_one = len(known) == 1 and before and start < end and within(known[0].place, start, end) == (start, end)
    is_one = is_one and not known[0].place.is_of_samples
    if is_one:
        yield from _with_one_before(known[0], start, end, limit)
        return
    first = _newest_before(known, start) if before else None
    for column in known:
        since, until = within(column.place, start, end)
        if since >= until:
            continue
        for batch in column.read(since, until, limit):
            if batch.num_rows:
                part = column.samples(batch)
                if first is not None and part.nanoseconds[0] > microseconds(start) * 1000:
                    yield first
                first = None
                yield part
                limit = limit and max(0, limit - batch.num_rows)
        if limit == 0:
            return
    if first is not None:
        yield first


def _with_one_before(
    column: "Column", start: datetime, end: datetime, limit: int | None
) -> Iterator[Samples]:
    batches = read(
        column.connection, column.place.table, column.names, start, end, newest_before=True, limit=limit
    )
    first: Samples | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        part = column.samples(batch)
        if part.time[0] < microseconds(start):
            if column.place.since is None or part.time[0] >= microseconds(column.place.since):
                first = part
            continue
        if first is not None and part.nanoseconds[0] > microseconds(start) * 1000:
            yield first
        first = None
        yield part
    if first is not None:
        yield first


def thinned(
    servers: Servers, signal: Signal, start: datetime, end: datetime, width: int, *, last: bool, before: bool
) -> Iterator[Samples] | None:
    """The first sample of each bin of `width` seconds from `start` to `end` (inclusive), or with `last` the
    last one; others may be among them. None if reading all samples is as fast. Raises ReadError.
    """
    found = [column for column in columns_of(servers, signal) if column.reaches(start, end)]
    if len(found) != 1 or not signal.cycle or width / signal.cycle < _FEW_IN_A_BIN:
        return None
    (column,) = found
    since, until = within(column.place, start, end + MICROSECOND)
    step = width * 1_000_000
    # the sample before the start may belong to the first bin
    first, stop = microseconds(since) // step + 1, microseconds(until) // step
    if not 1 <= stop - first <= _MOST_BINS:
        return None
    begin, after = moment_of(first * step), moment_of(stop * step)
    place, step_of_time = column.place, timedelta(seconds=width)
    batches = picked(
        column.connection, place.table, column.names, begin, step_of_time, stop - first, last=last
    )
    if batches is None:
        return None
    return chain(
        samples(servers, signal, start, begin, before=before),
        (column.samples(batch) for batch in batches if batch.num_rows),
        samples(servers, signal, after, end + MICROSECOND),
    )


def at(servers: Servers, signal: Signal, when: datetime) -> Samples | None:
    """The newest sample at or before an instant, also one without a reading. None when there is none. Raises
    ReadError.
    """
    known = columns_of(servers, signal)
    found = _newest_before(known, when + MICROSECOND)
    if found is None or found.nanoseconds[0] <= microseconds(when) * 1000:
        return found
    # it is later by less than a microsecond
    for part in samples(servers, signal, when, when + MICROSECOND):
        if part.nanoseconds[0] == microseconds(when) * 1000:
            return part.slice(0, 1)
    return _newest_before(known, when)


def demand_few(
    servers: Servers, signals: Sequence[Signal], start: datetime, end: datetime, most: int
) -> None:
    """Raises Refused (413) for more than `most` samples. Counts only if there may be so many."""
    left = most
    for signal in signals:
        span = (min(end, datetime.now(UTC)) - start).total_seconds()
        if signal.cycle and span / signal.cycle < left:
            left -= max(0, int(span / signal.cycle))
            continue
        left -= count(servers, signal, start, end, left)
        if left < 0:
            raise Refused(
                413,
                f"these are more than {most} samples, the maximum of this server: request a shorter time "
                "range, or a trend",
            )


def count(servers: Servers, signal: Signal, start: datetime, end: datetime, bound: int) -> int:
    """The number of samples in log and archive, including nulls; a number above `bound` is not exact."""
    n = 0
    for node in signal.nodes:
        connection = servers.of(node)
        for place in _places(connection, signal.name)[0]:
            since, until = within(place, start, end)
            if since < until and n <= bound and place.is_of_samples:
                n += sampled.count(connection, place, since, until)
            elif since < until and n <= bound:
                text = query(
                    "count",
                    log=sql.Identifier(LOG_TABLES, place.table),
                    start=time_literal(since),
                    end=time_literal(until),
                    bound=sql.Literal(bound + 1 - n),
                )
                n += records(connection, text)[0]["n"]
                n += count_cold(connection, place.table, since, until)
    return n


def _newest_before(known: Sequence["Column"], start: datetime) -> Samples | None:
    """The newest sample before an instant."""
    found: Samples | None = None
    for column in reversed(known):
        place = column.place
        until = start if place.until is None else min(start, place.until)
        if place.since is not None and place.since >= until:
            continue
        # a signal's first column in a table may have older rows than the signal's previous place
        if found is not None and found.time[0] >= microseconds(until):
            continue
        row = column.newest(until)
        sample = None if row is None else column.samples(row)
        if sample is None or (place.since is not None and sample.time[0] < microseconds(place.since)):
            continue
        if found is None or sample.time[0] > found.time[0]:
            found = sample
    return found


@dataclass(frozen=True)
class Column:
    """A place of a signal, its server, and the names of the columns with further information about each
    sample."""

    connection: Connection
    place: Place
    nanoseconds: str | None
    severity: str | None
    status: str | None
    scalar: str | None
    """the scalar of the waveforms there; None: the values themselves"""

    @property
    def names(self) -> list[str]:
        """The columns of the value, its alarm, and its nanoseconds."""
        others = (self.severity, self.status, self.nanoseconds)
        return [self.place.column, *(name for name in others if name is not None)]

    def read(self, start: datetime, end: datetime, limit: int | None) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on and before `end`, at most `limit`, with these names. Raises ReadError."""
        if self.place.is_of_samples:
            return sampled.read(self.connection, self.place, start, end, limit)
        return read(self.connection, self.place.table, self.names, start, end, limit=limit)

    def newest(self, before: datetime) -> pa.RecordBatch | None:
        """The newest row before an instant. Raises ReadError."""
        if self.place.is_of_samples:
            return sampled.newest(self.connection, self.place, before)
        return newest(self.connection, self.place.table, self.names, before)

    def reaches(self, start: datetime, end: datetime) -> bool:
        """Whether it may have samples of an interval, bounds included."""
        since, until = within(self.place, start, end + MICROSECOND)
        return since < until

    @property
    def shown(self) -> Place:
        """The place with the type of its samples."""
        kind = ColumnType(Kind.DOUBLE) if self.scalar else shown_type(self.place.type)
        return replace(self.place, type=kind)

    def samples(self, batch: pa.RecordBatch) -> Samples:
        time = batch.column(0).view(pa.int64()).to_numpy()

        def whole(name: str | None, names: Sequence[str] = ()) -> Whole | None:
            return None if name is None else _whole(batch[name], names)

        values, kind = batch[self.place.column], self.place.type.kind
        if self.scalar is not None:
            values = reduced(values, self.scalar)
        elif kind is Kind.DATETIME:
            values = pc.strftime(values, format="%Y-%m-%dT%H:%M:%SZ")
        elif kind is Kind.NUMERIC:
            # PostgreSQL's numeric is sent as text
            values = pc.cast(values, pa.float64())
        return Samples(
            self.shown,
            time,
            values,
            whole(self.nanoseconds),
            whole(self.severity, SEVERITIES),
            whole(self.status, STATUSES),
        )


def within(place: Place, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The part of an interval that belongs to a place; empty if its begin is not before its end."""
    since, until = place.since, place.until
    return start if since is None else max(start, since), end if until is None else min(end, until)


def _places(connection: Connection, signal: str) -> tuple[tuple[Place, ...], str | None]:
    """The places of a signal; for a scalar of waveforms the places of the waveforms, with the scalar."""
    found = places(connection, [signal])[signal]
    if not found and (part := waveform_of(signal)) is not None:
        return places(connection, [part[0]])[part[0]], part[1]
    return found, None


def columns_of(servers: Servers, signal: Signal) -> list[Column]:
    """The places of a signal, oldest first."""
    found = []
    for node in signal.nodes:
        kept, connection = servers.registry(node), servers.of(node)
        key = "columns", signal.name
        if key not in kept:
            kept[key] = _columns_of(connection, signal.name)
        found += [Column(connection, *each) for each in kept[key]]
    if len(signal.nodes) > 1:
        found.sort(key=lambda column: column.place.until or _FOREVER)
    return found


_Beside: TypeAlias = tuple[Place, str | None, str | None, str | None, str | None]
"""The arguments of `Column` except its connection."""


def _columns_of(connection: Connection, signal: str) -> list[_Beside]:
    """The places of a signal on a server. The same table has the signals of its alarm, by EPICS's names of
    fields, and the nanoseconds.
    """
    known, scalar = _places(connection, signal)
    if any(place.is_of_samples for place in known):
        of_samples = (sampled.NANOSECONDS, sampled.SEVERITY, sampled.STATUS, scalar)
        return [(place, *(of_samples if place.is_of_samples else (None,) * 4)) for place in _joined(known)]
    stored = known[0].signal if known else signal
    fields = [f"{stored}.SEVR", f"{stored}.STAT"]
    tables = sorted({place.table for place in known})
    found = places(connection, [*fields, *(nanoseconds_of(table) for table in tables)])

    def other_column(name: str, table: str) -> str | None:
        own = {place.column for place in known}
        there = [place.column for place in found[name] if place.table == table]
        return there[-1] if there and there[-1] not in own else None

    return [
        (
            place,
            other_column(nanoseconds_of(place.table), place.table),
            other_column(fields[0], place.table),
            other_column(fields[1], place.table),
            scalar,
        )
        for place in known
    ]


def _joined(known: Sequence[Place]) -> list[Place]:
    """Places of samples without those that only a change of limits, states or the like has begun."""
    found: list[Place] = []
    for place in known:
        since = found[-1].since if found and place.is_of_samples else None
        if found and found[-1] == replace(place, since=since, until=place.since):
            found[-1] = replace(place, since=since)
        else:
            found.append(place)
    return found


def _whole(values: pa.Array, names: Sequence[str]) -> Whole:
    """Integers, 0 for a missing one; texts are names of numbers."""
    if pa.types.is_string(values.type):
        numbers = {text: number_of(text, names) for text in values.unique().to_pylist()}
        return np.array([numbers[text] for text in values.to_pylist()], np.int64)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    whole = pc.fill_null(values.cast(pa.int64(), safe=False), 0)
    return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
