"""Events as text: JSON, QW (JSON for charts), CSV, TXT."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

import orjson
import pyarrow as pa

from ringlog.retrieval.appliance.events import Events
from ringlog.retrieval.strings import (
    Texts,
    csv_values,
    human,
    joined,
    json_values,
    nanoseconds,
    one_line,
    whole,
)

_BLOCK = 65_536  # events; their text stays within some MB
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
    """One signal of an answer: {"meta": …, "data": [one event a line]}."""
    return _json(meta, stream, _json_lines)


def qw(meta: dict[str, str], kind: str, stream: Iterator[Events]) -> Iterator[bytes]:
    """As json, with milliseconds since 1970 instead of seconds and nanoseconds, and whether the values are
    lists. `kind` is the type for an answer without events."""
    first = next(stream, None)
    if first is not None:
        kind, stream = first.kind, chain([first], stream)
    waveform = kind == "vector" or kind.endswith("[]")
    yield from _json(meta | {"waveform": waveform}, stream, _qw_lines)


def csv(stream: Iterator[Events]) -> Iterator[bytes]:
    """seconds since 1970, value, severity, status, nanoseconds; no reading is NaN, with severity 3."""
    for events in blocks(stream):
        yield joined(
            whole(events.seconds, ","),
            csv_values(events.values, "NaN", ","),
            *_alarms(events, ","),
            nanoseconds(events.nanos, "\n"),
        )


def txt(name: str, stream: Iterator[Events]) -> Iterator[bytes]:
    """TXT: a line for the signal, then time in UTC, value, severity, status, nanoseconds with tabs
    between.
    """
    yield f"Beginning data for {one_line(name)}\n".encode()
    for events in blocks(stream):
        yield joined(
            human(events.seconds, "\t"),
            csv_values(events.values, "NaN", "\t"),
            *_alarms(events, "\t"),
            nanoseconds(events.nanos, "\n"),
        )


def _json(
    meta: Mapping[str, str | bool], stream: Iterator[Events], lines: Callable[[Events, str], bytes]
) -> Iterator[bytes]:
    yield b'{ "meta": ' + orjson.dumps(meta) + b',\n"data": [ \n'
    separator = ""
    for events in blocks(stream):
        # the comma stands before each event but the first
        text = lines(events, ",\n")
        yield text if separator else text[2:]
        separator = ",\n"
    yield b"\n] }"


def _json_lines(events: Events, separator: str) -> bytes:
    alarms = events.alarms
    alarm: list[Texts] = [' "severity":0, "status":0']
    if alarms is not None:
        alarm = [' "severity":', whole(alarms[0], ","), ' "status":', whole(alarms[1], " ")]
    return joined(
        separator + '{ "secs": ',
        whole(events.seconds, ","),
        ' "val": ',
        json_values(events.values, ","),
        ' "nanos": ',
        nanoseconds(events.nanos, ","),
        *alarm,
        *_json_fields(events),
        " }",
    )


def _qw_lines(events: Events, separator: str) -> bytes:
    millis = whole(events.nanoseconds // 1_000_000, ",")
    values = json_values(events.values, " ")
    return joined(separator + '{ "millis": ', millis, ' "val": ', values, *_json_fields(events), "}")


def _json_fields(events: Events) -> list[Texts]:
    """Further values of an event: "fields": {"name": "text"}."""
    parts: list[Texts] = []
    for name, values in events.fields.items():
        begin = ', "fields": { ' if not parts else ","
        parts += [f'{begin}"{name}": "', values, '"']
    return [*parts, "}"] if parts else []


def _alarms(events: Events, after: str) -> list[Texts]:
    """Severity and status of each event; of all, where none has any."""
    alarms = events.alarms
    if alarms is None:
        return [f"0{after}0{after}"]
    return [whole(figures, after) for figures in alarms]
