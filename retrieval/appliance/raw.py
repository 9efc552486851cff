"""Events in PB/HTTP: chunks of a header line and a line per event, each a serialized message with escaped
line ends.

A chunk has events of one year and one type; an empty line separates chunks (the appliance's documentation,
"The .pb file format and the .pbraw binary protocol").
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringlog.retrieval import encoding
from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.appliance.texts import blocks
from ringlog.schema.column_type import ColumnType, Kind


class PayloadType(IntEnum):
    """The types of a chunk's values, by their numbers in the appliance's EPICSEvent.proto."""

    SCALAR_STRING = 0
    SCALAR_SHORT = 1
    SCALAR_FLOAT = 2
    SCALAR_ENUM = 3
    SCALAR_BYTE = 4
    SCALAR_INT = 5
    SCALAR_DOUBLE = 6
    WAVEFORM_STRING = 7
    WAVEFORM_SHORT = 8
    WAVEFORM_FLOAT = 9
    WAVEFORM_ENUM = 10
    WAVEFORM_BYTE = 11
    WAVEFORM_INT = 12
    WAVEFORM_DOUBLE = 13
    V4_GENERIC_BYTES = 14


_PAYLOADS = {
    Kind.REAL: (PayloadType.SCALAR_FLOAT, PayloadType.WAVEFORM_FLOAT),
    Kind.DOUBLE: (PayloadType.SCALAR_DOUBLE, PayloadType.WAVEFORM_DOUBLE),
    Kind.INT: (PayloadType.SCALAR_INT, PayloadType.WAVEFORM_INT),
    Kind.SMALLINT: (PayloadType.SCALAR_SHORT, PayloadType.WAVEFORM_SHORT),
    # the format has no 64-bit integer: a double is exact up to 2^53
    Kind.BIGINT: (PayloadType.SCALAR_DOUBLE, PayloadType.WAVEFORM_DOUBLE),
    # Phoebus does not read waveforms of enumerations
    Kind.BIT: (PayloadType.SCALAR_ENUM, PayloadType.WAVEFORM_SHORT),
    Kind.VARCHAR: (PayloadType.SCALAR_STRING, PayloadType.WAVEFORM_STRING),
}
"""The payloads of each kind: of single values, and of waveforms."""


def payload_type(kind: ColumnType) -> PayloadType:
    """The payload for a type returned by `shown_type`."""
    return _PAYLOADS[kind.kind][kind.is_array]


def raw(name: str, kind: ColumnType, headers: Mapping[str, str], stream: Iterator[Events]) -> Iterator[bytes]:
    """The answer for one signal. `kind` and `headers` are used for the header of an answer without events."""
    current: tuple[int, ColumnType, str] | None = None
    for events in blocks(stream):
        for part, year in _years(events):
            if (year, part.kind, part.unit) != current:
                yield (b"\n" if current else b"") + _header(name, part, year, headers)
                current = (year, part.kind, part.unit)
            yield encoding.events(
                payload_type(part.kind), _begin(year), part.nanoseconds, part.values, part.alarms, part.fields
            )
    if current is None:
        empty = Events(kind, headers.get("EGU", ""), np.empty(0, np.int64), pa.array([], pa.float64()))
        yield _header(name, empty, datetime.now(UTC).year, headers)


def ping_events(name: str) -> bytes:
    """The appliance's answer for the signal by which viewers test the connection: ten events of this year's
    first second (its DataRetrievalServlet.processPingPV)."""
    year = datetime.now(UTC).year
    begin = np.full(10, _begin(year) * 1_000_000_000)
    kind = ColumnType(Kind.DOUBLE)
    events = Events(kind, "", begin, pa.array(0.1 * np.arange(10)))
    return b"".join(raw(name, kind, {}, iter([events])))


def _years(events: Events) -> Iterator[tuple[Events, int]]:
    if not len(events):
        return
    first, last = (
        datetime.fromtimestamp(int(each) // 10**9, UTC).year for each in events.nanoseconds[[0, -1]]
    )
    start = 0
    for year in range(first, last + 1):
        end = int(np.searchsorted(events.nanoseconds, _begin(year + 1) * 1_000_000_000))
        if end > start:
            yield events.slice(start, end), year
        start = end


def _begin(year: int) -> int:
    """Seconds since 1970 of the begin of a year."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def _header(name: str, events: Events, year: int, headers: Mapping[str, str]) -> bytes:
    pairs = dict(headers) | ({"EGU": events.unit} if events.unit else {})
    known = {key: value for key, value in pairs.items() if value}
    return encoding.header(payload_type(events.kind), name, year, _points(events), known)


def _points(events: Events) -> int:
    """The number of values of the first event with a reading."""
    if not pa.types.is_list(events.values.type):
        return 1
    lengths: list[int | None] = pc.list_value_length(events.values).to_pylist()
    return next((length for length in lengths if length is not None), 0)
