"""Events in PB/HTTP: chunks of a header line and a line an event, serialized messages with line ends escaped.

A chunk is of one year and one kind; an empty line stands between chunks (the appliance's documentation,
"The .pb file format and the .pbraw binary protocol"). Numbers are encoded for a block of events at once, as
a matrix of bytes with a mask of those that are used; Python touches only events with text.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringlog.retrieval.appliance.epics_event import MESSAGE_OF, PayloadType, message
from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.appliance.texts import blocks

KINDS = {
    "real": PayloadType.SCALAR_FLOAT,
    "double": PayloadType.SCALAR_DOUBLE,
    "int": PayloadType.SCALAR_INT,
    "smallint": PayloadType.SCALAR_SHORT,
    # the format has no whole number of 64 bits: a double keeps what is within 2^53
    "bigint": PayloadType.SCALAR_DOUBLE,
    "bit": PayloadType.SCALAR_ENUM,
    "vector": PayloadType.WAVEFORM_DOUBLE,
    "real[]": PayloadType.WAVEFORM_FLOAT,
    "double[]": PayloadType.WAVEFORM_DOUBLE,
    "int[]": PayloadType.WAVEFORM_INT,
    "smallint[]": PayloadType.WAVEFORM_SHORT,
    "bigint[]": PayloadType.WAVEFORM_DOUBLE,
    # Phoebus reads no waveform of enumerations
    "bit[]": PayloadType.WAVEFORM_SHORT,
}
"""The payload of each column type; text is SCALAR_STRING."""

_ESCAPE = 0x1B
_ESCAPES = ((0x1B, 0x01), (0x0A, 0x02), (0x0D, 0x03))

Bytes = NDArray[np.uint8]


def payload_type(kind: str) -> PayloadType:
    """The type for a column type of a facility file, or for `vector`."""
    if kind.startswith("varchar"):
        return PayloadType.WAVEFORM_STRING if kind.endswith("[]") else PayloadType.SCALAR_STRING
    return KINDS[kind]


def raw(name: str, kind: str, headers: Mapping[str, str], stream: Iterator[Events]) -> Iterator[bytes]:
    """One signal's answer. `kind` and `headers` are for the one header of an answer without events."""
    current: tuple[int, str, str] | None = None
    for events in blocks(stream):
        for part, year in _years(events):
            if (year, part.kind, part.unit) != current:
                yield (b"\n" if current else b"") + _header(name, part, year, headers)
                current = (year, part.kind, part.unit)
            yield _lines(part, year)
    if current is None:
        empty = Events(kind, headers.get("EGU", ""), np.empty(0, np.int64), pa.array([], pa.float64()))
        yield _header(name, empty, datetime.now(UTC).year, headers)


def ping_events(name: str) -> bytes:
    """What the appliance answers for the signal that viewers ask for to try the connection: ten events of
    this year's first second (its DataRetrievalServlet.processPingPV)."""
    year = datetime.now(UTC).year
    begin = np.full(10, _begin(year) * 1_000_000_000)
    events = Events("double", "", begin, pa.array(0.1 * np.arange(10)))
    return b"".join(raw(name, "double", {}, iter([events])))


def escaped(line: bytes) -> bytes:
    """A message as a line of a chunk, without its end."""
    for byte, code in _ESCAPES:
        line = line.replace(bytes([byte]), bytes([_ESCAPE, code]))
    return line


def _years(events: Events) -> Iterator[tuple[Events, int]]:
    """The events of each year (UTC)."""
    if not len(events):
        return
    first, last = (datetime.fromtimestamp(int(seconds), UTC).year for seconds in events.seconds[[0, -1]])
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
    info = message("PayloadInfo")(type=payload_type(events.kind), pvname=name, year=year)
    info.elementCount = _points(events)
    for key, value in (dict(headers) | ({"EGU": events.unit} if events.unit else {})).items():
        if value:
            info.headers.add(name=key, val=value)
    return escaped(info.SerializeToString()) + b"\n"


def _points(events: Events) -> int:
    """The number of values of the first event with a reading."""
    if not pa.types.is_list(events.values.type):
        return 1
    lengths: list[int | None] = pc.list_value_length(events.values).to_pylist()
    return next((length for length in lengths if length is not None), 0)


def _lines(events: Events, year: int) -> bytes:
    payload = payload_type(events.kind)
    seconds = events.seconds - _begin(year)
    if payload is PayloadType.SCALAR_STRING or events.fields or events.kind.endswith("[]"):
        return _lines_by_message(events, payload, seconds)
    parts = [_tag(1, 0), _varint(seconds, 4), _tag(2, 0), _varint(events.nanos, 5)]
    parts += _value(events, payload)
    for number, figures in zip((4, 5), events.alarms or (), strict=False):
        parts += _where_not_0(number, figures)
    return _assembled(parts, len(events))


Part = tuple[Bytes, NDArray[np.int64] | None]
"""A matrix of bytes, an event a row, and how many of them are used; None is all."""


def _value(events: Events, payload: PayloadType) -> list[Part]:
    values = events.values
    if payload is PayloadType.WAVEFORM_DOUBLE:
        flat = np.ascontiguousarray(values.flatten().to_numpy(zero_copy_only=False), "<f8")
        matrix = flat.view(np.uint8).reshape(len(events), -1)
        length = np.full(len(events), matrix.shape[1])
        return [_tag(3, 2), _varint(length, 2), (matrix, None)]
    if payload in (PayloadType.SCALAR_FLOAT, PayloadType.SCALAR_DOUBLE):
        width, wire = (4, 5) if payload is PayloadType.SCALAR_FLOAT else (8, 1)
        kind = pa.float32() if width == 4 else pa.float64()
        numbers = values.cast(kind, safe=False).to_numpy(zero_copy_only=False)
        return [_tag(3, wire), (_little(numbers, f"<f{width}"), None)]
    # no reading is 0, as of an EPICS record that is undefined
    whole = pc.fill_null(values.cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
    if payload is PayloadType.SCALAR_INT:
        return [_tag(3, 5), (_little(whole, "<i4"), None)]
    return [_tag(3, 0), _varint((whole.astype(np.int64) << 1) ^ (whole.astype(np.int64) >> 63), 5)]


def _little(numbers: NDArray[np.generic], kind: str) -> Bytes:
    return np.ascontiguousarray(numbers, kind).view(np.uint8).reshape(len(numbers), -1)


def _tag(number: int, wire: int) -> Part:
    return np.array([[number << 3 | wire]], np.uint8), None


def _varint(numbers: NDArray[np.int64], width: int) -> Part:
    """Protocol Buffers' varints of at most `width` bytes, of numbers below 2^32."""
    rest = numbers.astype(np.uint32)
    matrix, lengths = np.empty((len(numbers), width), np.uint8), np.ones(len(numbers), np.int64)
    for place in range(width):
        more = rest > 0x7F
        matrix[:, place] = rest & 0x7F | more.astype(np.uint32) << 7
        lengths += more
        rest >>= 7
    return matrix, lengths


def _where_not_0(number: int, figures: NDArray[np.int64]) -> list[Part]:
    """A field that is 0 where it is left out."""
    there = (figures != 0).astype(np.int64)
    tag, _ = _tag(number, 0)
    matrix, lengths = _varint(figures, 5)
    assert lengths is not None
    return [(np.broadcast_to(tag, (len(figures), 1)), there), (matrix, lengths * there)]


def _assembled(parts: list[Part], n: int) -> bytes:
    """Lines of these parts, escaped."""
    width = sum(matrix.shape[1] for matrix, _ in parts) + 1  # the line's end
    out, used = np.empty((n, width), np.uint8), np.ones((n, width), bool)
    length, place = np.ones(n, np.int64), 0
    for matrix, lengths in parts:
        end = place + matrix.shape[1]
        out[:, place:end] = matrix
        if lengths is None:
            length += matrix.shape[1]
        else:
            used[:, place:end] = np.arange(matrix.shape[1]) < lengths[:, None]
            length += lengths
        place = end
    out[:, -1] = 0x0A
    flat = out[used]
    special = (flat == 0x1B) | (flat == 0x0A) | (flat == 0x0D)
    special[np.cumsum(length) - 1] = False
    places = np.flatnonzero(special)
    for byte, code in _ESCAPES:
        flat[places[flat[places] == byte]] = code
    return np.insert(flat, places, _ESCAPE).tobytes()


def _lines_by_message(events: Events, payload: PayloadType, seconds: NDArray[np.int64]) -> bytes:
    made = message(MESSAGE_OF[payload])
    missing: object = _UNDEFINED.get(payload, float("nan"))
    fields = {name: values.to_pylist() for name, values in events.fields.items()}
    lines = []
    alarms = events.alarms
    packed = _packed(events.values, payload)
    values = [None] * len(events) if packed else _listed(events.values)
    for index, (second, nano, value) in enumerate(
        zip(seconds.tolist(), events.nanos.tolist(), values, strict=True)
    ):
        given = missing if value is None else value
        event = made(secondsintoyear=second, nano=nano, **({} if packed else {"val": given}))
        if alarms is not None and (alarms[0][index] or alarms[1][index]):
            event.severity, event.status = int(alarms[0][index]), int(alarms[1][index])
        for name, texts in fields.items():
            event.fieldvalues.add(name=name, val=texts[index])
        lines.append(escaped(event.SerializeToString() + (packed[index] if packed else b"")))
    return b"\n".join(lines) + b"\n" if lines else b""


def _listed(values: pa.Array) -> list[Any]:
    """Values as protobuf takes them: bits are whole numbers."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif pa.types.is_list(values.type) and pa.types.is_boolean(values.type.value_type):
        values = values.cast(pa.list_(pa.int8()))
    found: list[Any] = values.to_pylist()
    return found


# for no reading; Phoebus does not get through waveforms of which the first has no points
_UNDEFINED = {
    PayloadType.SCALAR_STRING: "",
    PayloadType.WAVEFORM_STRING: [""],
    PayloadType.WAVEFORM_SHORT: [0],
}

_PACKED = {
    PayloadType.WAVEFORM_FLOAT: "<f4",
    PayloadType.WAVEFORM_DOUBLE: "<f8",
    PayloadType.WAVEFORM_INT: "<i4",
}


def _packed(values: pa.Array, payload: PayloadType) -> list[bytes]:
    """The field `val` of each event, where its numbers lie in the message as in memory; else nothing."""
    if payload not in _PACKED:
        return []
    numbers = np.ascontiguousarray(values.flatten().to_numpy(zero_copy_only=False), _PACKED[payload])
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    undefined = np.array([0 if payload is PayloadType.WAVEFORM_INT else np.nan], _PACKED[payload])
    found, start = [], 0
    for end, is_there in zip(np.cumsum(lengths).tolist(), values.is_valid().to_pylist(), strict=True):
        content = (numbers[start:end] if is_there else undefined).tobytes()
        found.append(bytes([3 << 3 | 2]) + _length(len(content)) + content if content else b"")
        start = end
    return found


def _length(number: int) -> bytes:
    """A varint."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
