"""The rows of an old server's log as Arrow, part by part, for ringlog.history.migration."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ringlog.adoption.rings import Ring
from ringlog.adoption.rows.arriving import OldSession
from ringlog.adoption.rows.copying import WEEK, as_text, log_bounds, selected, selection
from ringlog.adoption.rows.source import Source
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import OldColumn
from ringlog.adoption.server.texts import Reading, Unreadable
from ringlog.gateway import OldServer, OldServerError
from ringlog.history import incoming
from ringlog.history.incoming import Description, IncomingError, fraction_of
from ringlog.history.pace import Pace
from ringlog.history.sources import tds

_HOUR = timedelta(hours=1)
_PART_BYTES = tds.AHEAD * tds.BATCH_BYTES
"""of a part where there are several connections: it waits in memory until those before it are used"""


@dataclass(frozen=True)
class _Span:
    """The time of a part's rows, as the old server has it."""

    begins: datetime
    ends: datetime


class OldRows(incoming.Source):
    """The log of a ring at an old server, in the order of its times, by the gateway's client.

    A statement reads a week; with several connections, or with hours, about 16 MB. Times without an offset
    are those of the source's zone.
    """

    def __init__(self, source: Source, ring: Ring, connections: int = 1, pace: Pace | None = None) -> None:
        """`pace`: the limits of all connections together."""
        self._source = source
        self._ring = ring
        self._connections = connections
        self._pace = pace or Pace()
        self._bounds: tuple[datetime, datetime] | None = None
        self._reached: datetime | None = None

    def __str__(self) -> str:
        log = self._ring.log
        return f"{self._source.address}: {log.qualified_name if log else ''}"

    @property
    def described(self) -> Description:
        return Description(self._ring.time, self._ring.seq_no, self._source.timezone)

    def fraction(self) -> float | None:
        return fraction_of(self._bounds, self._reached)

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See ringlog.history.incoming.Source. Raises IncomingError, also for a text that cannot be read."""
        source, ring = self._source, self._ring
        connect = partial(tds.session, source.address, source.password, source.version)
        try:
            with closing(OldSession(source)) as old:
                bounds = log_bounds(old, ring, source.timezone)
            if bounds is None:
                return
            first, last, here = bounds
            self._bounds = first.replace(tzinfo=here), min(last.replace(tzinfo=here), end)
            # an hour is repeated in autumn; rows outside are left out later
            stop = min(last + _HOUR, end.astimezone(here).replace(tzinfo=None) + _HOUR)
            if start is not None:
                first = max(first, start.astimezone(here).replace(tzinfo=None) - _HOUR)
            is_cut = self._connections > 1 or self._pace.has_hours
            parts = _Parts(source, ring, wanted, first, stop, is_cut, self._pace)
            for part, batch in tds.in_order(parts, self._connections, connect):
                if batch is not None:
                    yield batch
                else:
                    self._reached = part.ends.replace(tzinfo=here)
        except (Unreadable, OldServerError) as error:
            raise IncomingError(f"{self}: {error}") from None


class _Parts:
    """The log's time, cut into parts."""

    def __init__(
        self,
        source: Source,
        ring: Ring,
        wanted: pa.Schema,
        first: datetime,
        stop: datetime,
        is_cut: bool,
        pace: Pace,
    ) -> None:
        self._ring = ring
        self._readings = {
            column: of for column, of in selected(ring, source).items() if column.name.lower() in wanted.names
        }
        self._begins = first
        self._stop = stop
        self._span = _HOUR if is_cut else WEEK
        self._is_cut = is_cut
        self._pace = pace
        self._most = 1 << 62
        if pace.rate:
            # a batch has at most the rows that the rate allows in a second
            self._most = max(1, int(pace.rate / (len(self._readings) + 2)))

    def next(self) -> _Span | None:
        """See ringlog.history.sources.tds.Parts."""
        if self._begins >= self._stop:
            return None
        begins, self._begins = self._begins, min(self._begins + self._span, self._stop)
        return _Span(begins, self._begins)

    def rows(self, server: OldServer, part: _Span, ended: threading.Event) -> Iterator[pa.RecordBatch]:
        """See ringlog.history.sources.tds.Parts."""
        ring = self._ring
        assert ring.log is not None
        time, seq_no = quoted(ring.time), quoted(ring.seq_no)
        within = f"{time} >= '{as_text(part.begins)}' and {time} < '{as_text(part.ends)}'"
        query = selection(ring, self._readings.values(), ring.log.qualified_name, within)
        query += f" order by {time}, {seq_no}"
        self._pace.admit(ended)
        bytes_ = 0
        for batch in tds.rows(server, query, self._most):
            bytes_ += batch.nbytes
            yield self._read(batch)
            self._pace.passed(batch.num_rows * batch.num_columns, ended)
        if self._is_cut:
            # at most twice as long as the part before, and a whole number of seconds
            longer = min(2.0, _PART_BYTES / max(1, bytes_))
            seconds = round((part.ends - part.begins).total_seconds() * longer)
            self._span = min(WEEK, timedelta(seconds=max(1, seconds)))

    def _read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ring = self._ring
        seq_no, time, *values = batch.columns
        read = [
            _read(column, of, each) for (column, of), each in zip(self._readings.items(), values, strict=True)
        ]
        names = [ring.seq_no, ring.time, *(column.name.lower() for column in self._readings)]
        return pa.RecordBatch.from_arrays([seq_no, time, *read], names)


def _read(column: OldColumn, of: Reading, values: pa.Array) -> pa.Array:
    """Values as they are to be stored. Raises Unreadable."""
    try:
        if of.is_expression:
            return pa.array([of.value(value) for value in values.to_pylist()])
        if pa.types.is_string(values.type) and pc.any(pc.match_substring(values, "\0")).as_py():
            raise Unreadable("a text holds a zero byte, which no text of PostgreSQL may")
    except Unreadable as error:
        raise Unreadable(f"column {column.name}: {error}") from None
    return values
