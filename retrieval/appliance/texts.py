"""Events as text: JSON, QW (JSON for charts), CSV, TXT."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.encoding import Piece, lines
from ringlog.schema.column_type import ColumnType

_BLOCK = 65_536  # events; their text has a few MB at most
_VALUES = 1 << 20  # of waveforms


def blocks(stream: Iterator[Events]) -> Iterator[Events]:
    """Events in blocks of bounded size."""
    for events in stream:
        step = _BLOCK
        if pa.types.is_list(events.values.type) and len(events):
            points = max(1, len(events.values.flatten()) // len(events))
            step = max(1, min(_BLOCK, _VALUES // points))
        for start in range(0, len(events), step):
            yield events.slice(start, min(start + step, len(events)))


def json(meta: dict[str, str], stream: Iterator[Events]) -> Iterator[bytes]:
    """One signal of an answer: {"meta": …, "data": [one event per line]}."""
    return _json(meta, stream, _json_pieces)


def qw(meta: dict[str, str], kind: ColumnType, stream: Iterator[Events]) -> Iterator[bytes]:
    """Like json, with milliseconds since 1970 instead of seconds and nanoseconds, and a mark whether the
    values are lists. `kind` is the type for an answer without events."""
    first = next(stream, None)
    if first is not None:
        kind, stream = first.kind, chain([first], stream)
    yield from _json(meta | {"waveform": kind.is_array}, stream, _qw_pieces)


def csv(stream: Iterator[Events]) -> Iterator[bytes]:
    """seconds since 1970, value, severity, status, nanoseconds; a missing reading is NaN, with severity 3."""
    for events in blocks(stream):
        time = events.nanoseconds
        pieces = _csv_pieces(events, events.values, b",")
        yield lines(("seconds", time), b",", *pieces, ("below_second", time), b"\n")


def txt(name: str, stream: Iterator[Events]) -> Iterator[bytes]:
    """TXT: a line for the signal, then time in UTC, value (a text on one line), severity, status and
    nanoseconds, with tabs."""
    yield f"Beginning data for {' '.join(name.splitlines())}\n".encode()
    for events in blocks(stream):
        time = events.nanoseconds
        values = events.values
        if pa.types.is_string(values.type):
            values = pc.replace_substring_regex(pc.utf8_rtrim(values, "\r\n"), "\r\n?|\n", " ")
        pieces = _csv_pieces(events, values, b"\t")
        yield lines(("human", time), b" +00:00\t", *pieces, ("below_second", time), b"\n")


def _json(
    meta: Mapping[str, str | bool], stream: Iterator[Events], pieces: Callable[[Events], list[Piece]]
) -> Iterator[bytes]:
    yield b'{ "meta": ' + orjson.dumps(meta) + b',\n"data": [ \n'
    first = True
    for events in blocks(stream):
        # a comma precedes each event except the first
        text = lines(b",\n", *pieces(events))
        yield text[2:] if first else text
        first = False
    yield b"\n] }"


def _json_pieces(events: Events) -> list[Piece]:
    time = events.nanoseconds
    parts: list[Piece] = [b'{ "secs": ', ("seconds", time), b', "val": ', ("json", events.values)]
    parts += [b', "nanos": ', ("below_second", time)]
    if (alarms := events.alarms) is None:
        parts.append(b', "severity":0, "status":0')
    else:
        parts += [b', "severity":', ("json", alarms[0]), b', "status":', ("json", alarms[1])]
    return [*parts, *_json_fields(events), b" }"]


def _qw_pieces(events: Events) -> list[Piece]:
    values: Piece = ("json", events.values)
    fields = _json_fields(events)
    return [b'{ "millis": ', ("milliseconds", events.nanoseconds), b', "val": ', values, *fields, b" }"]


def _json_fields(events: Events) -> list[Piece]:
    """Further values of an event: "fields": {"name": "text"}."""
    parts: list[Piece] = []
    for name, values in events.fields.items():
        begin = b"," if parts else b', "fields": { '
        parts += [begin + orjson.dumps(name) + b": ", ("json", values)]
    return [*parts, b"}"] if parts else []


def _csv_pieces(events: Events, values: pa.Array, after: bytes) -> list[Piece]:
    """Value, severity and status."""
    value: Piece = ("csv", values, b"NaN")
    if (alarms := events.alarms) is None:
        return [value, after + b"0" + after + b"0" + after]
    return [value, after, ("json", alarms[0]), after, ("json", alarms[1]), after]
