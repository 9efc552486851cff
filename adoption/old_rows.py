"""The rows of an old server's log as Arrow, week by week, for ringlog.history.migration."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pymssql

from ringlog.adoption.copying import WEEK, Part, Source, log_bounds, within
from ringlog.adoption.moments import moment
from ringlog.adoption.names import quoted
from ringlog.adoption.rings import Ring
from ringlog.adoption.session import connected, message_of, number
from ringlog.adoption.texts import QuestionMarks, Unreadable, reading
from ringlog.history.incoming import Description, IncomingError, fraction_of

if TYPE_CHECKING:
    from ringlog.adoption.objects import OldColumn

_BATCH = 20_000
"""values of a batch, about a megabyte of Python's objects"""

_ARROW = {
    "real": pa.float32(),
    "float": pa.float64(),
    "double precision": pa.float64(),
    "tinyint": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "bit": pa.bool_(),
}


class OldRows:
    """The log of a ring at an old server, in the order of its times, by the client of `ringlog adopt`.

    A statement reads a week. Times without an offset are those of the source's zone.
    """

    def __init__(self, source: Source, ring: Ring) -> None:
        self._source = source
        self._ring = ring
        self._bounds: tuple[datetime, datetime] | None = None
        self._reached: datetime | None = None

    def __str__(self) -> str:
        log = self._ring.log
        return f"{self._source.address}: {log.place if log else ''}"

    @property
    def described(self) -> Description:
        return Description(self._ring.time, self._ring.seq_no, self._source.timezone)

    def fraction(self) -> float | None:
        return fraction_of(self._bounds, self._reached)

    def batches(self, wanted: pa.Schema, start: datetime | None, end: datetime) -> Iterator[pa.RecordBatch]:
        """See ringlog.history.incoming.Source. Raises IncomingError, also for a text that cannot be read."""
        source, ring = self._source, self._ring
        try:
            with connected(source.address, source.password, source.version) as old:
                bounds = log_bounds(old, ring)
                if bounds is None:
                    return
                first, last, is_zoned = bounds
                here = UTC if is_zoned else ZoneInfo(source.timezone)
                self._bounds = first.replace(tzinfo=here), min(last.replace(tzinfo=here), end)
                # an hour is repeated in autumn; rows outside are left out later
                stop = end.astimezone(here).replace(tzinfo=None) + timedelta(hours=1)
                begins = first
                if start is not None:
                    begins = max(first, start.astimezone(here).replace(tzinfo=None) - timedelta(hours=1))
                while begins <= last and begins < stop:
                    yield from self._week(old, Part(ring, begins), wanted)
                    begins += WEEK
                    self._reached = begins.replace(tzinfo=here)
        except Unreadable as error:
            raise IncomingError(f"{self}: {error}") from None
        except pymssql.Error as error:
            raise IncomingError(f"{self}: {number(error)} {message_of(error)}") from None

    def _week(self, old: pymssql.Connection, part: Part, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        ring, source = self._ring, self._source
        assert ring.log is not None
        columns = [
            column
            for column in ring.table.columns
            if column.name not in (ring.seq_no, ring.time) and column.name.lower() in wanted.names
        ]
        of = [reading(column, source.charset, source.is_ase) for column in columns]
        marks = QuestionMarks(columns, of)
        names = ", ".join([quoted(ring.seq_no), quoted(ring.time), *(each.expression for each in of)])
        order = f"{quoted(ring.time)}, {quoted(ring.seq_no)}"
        rows = max(1, _BATCH // (len(columns) + 2))
        with old.cursor() as cursor:
            cursor.execute(f"select {names} from {ring.log.place} where {within(part)} order by {order}")
            while batch := cursor.fetchmany(rows):
                seq_nos, times, *values = zip(*batch, strict=True)
                for row in zip(*values, strict=True) if marks.any_read else ():
                    marks.add(row)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(seq_nos, pa.int64()),
                        _times(times),
                        *(
                            _array(column, [each.value(value) for value in column_values])
                            if each.changes
                            else _array(column, column_values)
                            for column, each, column_values in zip(columns, of, values, strict=True)
                        ),
                    ],
                    [ring.seq_no, ring.time, *(column.name.lower() for column in columns)],
                )
            if lost := marks.lost(cursor, f"{ring.log.place} where {within(part)}"):
                raise Unreadable("; ".join(lost))


def _times(values: tuple[object, ...]) -> pa.Array:
    read = [moment(value) for value in values]
    zoned = any(each is not None and each.tzinfo is not None for each in read)
    return pa.array(read, pa.timestamp("us", "UTC" if zoned else None))


def _array(column: "OldColumn", values: object) -> pa.Array:
    return pa.array(values, _ARROW.get(column.type))
