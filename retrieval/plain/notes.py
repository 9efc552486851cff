"""Notes beside samples: unit and description of each signal, marks, the facility's zone, names of files."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection, records, time_literal
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.texts import query

_MARKS = sql.SQL("select * from ringlog.list_marks({start}, {end}, {names})")
_SHOWN = (
    *("table", "column", "type", "unit", "description"),
    *("limits", "alarm_limits", "states", "held", "decimals", "now"),
)


def described(signal: Signal) -> dict[str, object]:
    content: dict[str, object] = {"signal": signal.name}
    content |= {name: getattr(signal, name) for name in _SHOWN} | {"type": str(signal.type)}
    return content | ({"was": signal.was} if signal.was else {})


def noted(
    schema: pa.Schema, servers: Servers, signals: Sequence[Signal], start: datetime, end: datetime
) -> pa.Schema:
    """The schema with `ringlog` in its metadata: the zone, the signals and the marks of the time as JSON."""
    zone = records(servers.first, query("plain/me"))[0]["timezone"]
    names = [signal.name for signal in signals]
    content = {
        "timezone": zone,
        "signals": [described(signal) for signal in signals],
        "marks": marks_of(servers.first, names, start, end),
    }
    return schema.with_metadata({"ringlog": orjson.dumps(content)})


def marks_of(
    connection: Connection, signals: Sequence[str] | None, start: datetime, end: datetime
) -> list[dict[str, Any]]:
    """The marks of these signals, and of all, that touch a time; None: of any signals."""
    wanted = sql.Literal(None if signals is None else "\n".join(signals))
    times = {"start": time_literal(start), "end": time_literal(end)}
    return records(connection, _MARKS.format(names=wanted, **times))


def with_unit(name: str, kind: pa.DataType, signal: Signal) -> pa.Field:
    """A column of a signal's values: its metadata has unit and description."""
    return pa.field(name, kind, metadata={"unit": signal.unit, "description": signal.description})


def comments(schema: pa.Schema) -> bytes:
    """The notes of a schema as lines of CSV that begin with #."""
    notes = orjson.loads(
        (schema.metadata or {}).get(b"ringlog", b'{"timezone":"UTC","signals":[],"marks":[]}')
    )
    lines = [f"# time: UTC (the facility is in {notes['timezone']})"]
    for each in notes["signals"]:
        states = ", ".join(f"{number} = {name}" for number, name in (each["states"] or {}).items())
        words = "; ".join(filter(None, (each["unit"], each["description"], states)))
        lines.append(f"# {each['signal']}: {' '.join(words.split())}")
    for each in notes["marks"]:
        when = each["time"] if each["until"] is None else f"{each['time']} to {each['until']}"
        lines.append(f"# mark, {when}, {each['login']}: {' '.join(each['text'].split())}")
    return "".join(f"{line}\n" for line in lines).encode()


def file_name(names: Sequence[str], start: datetime, end: datetime) -> str:
    """A name for a file with these signals from `start` to `end`, without a suffix."""
    first = re.sub(r"[^\w.-]+", "_", names[0], flags=re.ASCII)[:100]
    more = f"_and_{len(names) - 1}_more" if len(names) > 1 else ""
    return f"{first}{more}_{start:%Y%m%dT%H%M%SZ}_{end:%Y%m%dT%H%M%SZ}"
