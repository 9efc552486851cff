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
from ringlog.history.signals import Location, locations
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
    """Samples of one location, oldest first. A null value is a row without a reading; NaN is a reading."""

    location: Location
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
            self.location, self.time[which], values, *(None if one is None else one[which] for one in others)
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
    columns = columns_of(servers, signal)
    # if one column has all of them it is read with the others
    is_one = len(columns) == 1 and before and start < end
    is_one = is_one and within(columns[0].location, start, end) == (start, end)
    if is_one and not columns[0].location.is_of_samples:
        yield from _with_one_before(columns[0], start, end, limit)
        return
    first = _newest_before(columns, start) if before else None
    for column in columns:
        since, until = within(column.location, start, end)
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
        column.connection, column.location.table, column.names, start, end, newest_before=True, limit=limit
    )
    first: Samples | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        part = column.samples(batch)
        if part.time[0] < microseconds(start):
            if column.location.since is None or part.time[0] >= microseconds(column.location.since):
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
    columns = [column for column in columns_of(servers, signal) if column.reaches(start, end)]
    if len(columns) != 1 or not signal.cycle or width / signal.cycle < _FEW_IN_A_BIN:
        return None
    (column,) = columns
    since, until = within(column.location, start, end + MICROSECOND)
    step = width * 1_000_000
    # the sample before the start may belong to the first bin
    first, stop = microseconds(since) // step + 1, microseconds(until) // step
    if not 1 <= stop - first <= _MOST_BINS:
        return None
    begin, after = moment_of(first * step), moment_of(stop * step)
    location, step_of_time = column.location, timedelta(seconds=width)
    batches = picked(
        column.connection, location.table, column.names, begin, step_of_time, stop - first, last=last
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
        for location in _locations(connection, signal.name)[0]:
            since, until = within(location, start, end)
            if since < until and n <= bound and location.is_of_samples:
                n += sampled.count(connection, location, since, until)
            elif since < until and n <= bound:
                text = query(
                    "count",
                    log=sql.Identifier(LOG_TABLES, location.table),
                    start=time_literal(since),
                    end=time_literal(until),
                    bound=sql.Literal(bound + 1 - n),
                )
                n += records(connection, text)[0]["n"]
                n += count_cold(connection, location.table, since, until)
    return n


def _newest_before(columns: Sequence["Column"], start: datetime) -> Samples | None:
    """The newest sample before an instant."""
    latest: Samples | None = None
    for column in reversed(columns):
        location = column.location
        until = start if location.until is None else min(start, location.until)
        if location.since is not None and location.since >= until:
            continue
        # a signal's first column in a table may have older rows than the signal's previous location
        if latest is not None and latest.time[0] >= microseconds(until):
            continue
        row = column.newest(until)
        sample = None if row is None else column.samples(row)
        if sample is None or (location.since is not None and sample.time[0] < microseconds(location.since)):
            continue
        if latest is None or sample.time[0] > latest.time[0]:
            latest = sample
    return latest


@dataclass(frozen=True)
class Column:
    """A location of a signal, its server, and the names of the columns with further information about each
    sample."""

    connection: Connection
    location: Location
    nanoseconds: str | None
    severity: str | None
    status: str | None
    scalar: str | None
    """the scalar of the waveforms there; None: the values themselves"""

    @property
    def names(self) -> list[str]:
        """The columns of the value, its alarm, and its nanoseconds."""
        others = (self.severity, self.status, self.nanoseconds)
        return [self.location.column, *(name for name in others if name is not None)]

    def read(self, start: datetime, end: datetime, limit: int | None) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on and before `end`, at most `limit`, with these names. Raises ReadError."""
        if self.location.is_of_samples:
            return sampled.read(self.connection, self.location, start, end, limit)
        return read(self.connection, self.location.table, self.names, start, end, limit=limit)

    def newest(self, before: datetime) -> pa.RecordBatch | None:
        """The newest row before an instant. Raises ReadError."""
        if self.location.is_of_samples:
            return sampled.newest(self.connection, self.location, before)
        return newest(self.connection, self.location.table, self.names, before)

    def reaches(self, start: datetime, end: datetime) -> bool:
        """Whether it may have samples of an interval, bounds included."""
        since, until = within(self.location, start, end + MICROSECOND)
        return since < until

    @property
    def shown(self) -> Location:
        """The location with the type of its samples."""
        kind = ColumnType(Kind.DOUBLE) if self.scalar else shown_type(self.location.type)
        return replace(self.location, type=kind)

    def samples(self, batch: pa.RecordBatch) -> Samples:
        time = batch.column(0).view(pa.int64()).to_numpy()

        def whole(name: str | None, names: Sequence[str] = ()) -> Whole | None:
            return None if name is None else _whole(batch[name], names)

        values, kind = batch[self.location.column], self.location.type.kind
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


def within(location: Location, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The part of an interval that belongs to a location; empty if its begin is not before its end."""
    since, until = location.since, location.until
    return start if since is None else max(start, since), end if until is None else min(end, until)


def _locations(connection: Connection, signal: str) -> tuple[tuple[Location, ...], str | None]:
    """A signal's locations; for a scalar of waveforms the locations of the waveforms, with the scalar."""
    stored = locations(connection, [signal])[signal]
    if not stored and (part := waveform_of(signal)) is not None:
        return locations(connection, [part[0]])[part[0]], part[1]
    return stored, None


def columns_of(servers: Servers, signal: Signal) -> list[Column]:
    """The locations of a signal, oldest first."""
    stored = []
    for node in signal.nodes:
        kept, connection = servers.registry(node), servers.of(node)
        key = "columns", signal.name
        if key not in kept:
            kept[key] = _columns_of(connection, signal.name)
        stored += [Column(connection, *each) for each in kept[key]]
    if len(signal.nodes) > 1:
        stored.sort(key=lambda column: column.location.until or _FOREVER)
    return stored


_Beside: TypeAlias = tuple[Location, str | None, str | None, str | None, str | None]
"""The arguments of `Column` except its connection."""


def _columns_of(connection: Connection, signal: str) -> list[_Beside]:
    """The locations of a signal on a server. The same table has the signals of its alarm, by EPICS's names of
    fields, and the nanoseconds.
    """
    own, scalar = _locations(connection, signal)
    if any(location.is_of_samples for location in own):
        names = (sampled.NANOSECONDS, sampled.SEVERITY, sampled.STATUS, scalar)
        return [(location, *(names if location.is_of_samples else (None,) * 4)) for location in _joined(own)]
    stored = own[0].signal if own else signal
    fields = [f"{stored}.SEVR", f"{stored}.STAT"]
    tables = sorted({location.table for location in own})
    others = locations(connection, [*fields, *(nanoseconds_of(table) for table in tables)])

    def other_column(name: str, table: str) -> str | None:
        own_columns = {location.column for location in own}
        columns = [location.column for location in others[name] if location.table == table]
        return columns[-1] if columns and columns[-1] not in own_columns else None

    return [
        (
            location,
            other_column(nanoseconds_of(location.table), location.table),
            other_column(fields[0], location.table),
            other_column(fields[1], location.table),
            scalar,
        )
        for location in own
    ]


def _joined(locations: Sequence[Location]) -> list[Location]:
    """Locations of samples without those that only a change of limits, states or the like has begun."""
    joined: list[Location] = []
    for location in locations:
        since = joined[-1].since if joined and location.is_of_samples else None
        if joined and joined[-1] == replace(location, since=since, until=location.since):
            joined[-1] = replace(location, since=since)
        else:
            joined.append(location)
    return joined


def _whole(values: pa.Array, names: Sequence[str]) -> Whole:
    """Integers, 0 for a missing one; texts are names of numbers."""
    if pa.types.is_string(values.type):
        numbers = {text: number_of(text, names) for text in values.unique().to_pylist()}
        return np.array([numbers[text] for text in values.to_pylist()], np.int64)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    whole = pc.fill_null(values.cast(pa.int64(), safe=False), 0)
    return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
