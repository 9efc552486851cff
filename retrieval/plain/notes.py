"""Notes beside samples: unit and description of each signal, the facility's time zone, names of files."""

import re
from collections.abc import Sequence
from datetime import datetime

import orjson
import pyarrow as pa

from ringlog.history.connection import records
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.texts import query

_SHOWN = (
    *("table", "column", "type", "unit", "description"),
    *("limits", "alarm_limits", "states", "held", "decimals", "now"),
)


def described(signal: Signal) -> dict[str, object]:
    """A signal as JSON has it."""
    content: dict[str, object] = {"signal": signal.name}
    content |= {name: getattr(signal, name) for name in _SHOWN} | {"type": str(signal.type)}
    return content | ({"was": signal.was} if signal.was else {})


def noted(schema: pa.Schema, servers: Servers, signals: Sequence[Signal]) -> pa.Schema:
    """The schema with `ringlog` in its metadata: the zone and the signals as JSON."""
    zone = records(servers.first, query("me"))[0]["timezone"]
    content = {"timezone": zone, "signals": [described(signal) for signal in signals]}
    return schema.with_metadata({"ringlog": orjson.dumps(content)})


def with_unit(name: str, kind: pa.DataType, signal: Signal) -> pa.Field:
    """A column of a signal's values: its metadata has unit and description."""
    return pa.field(name, kind, metadata={"unit": signal.unit, "description": signal.description})


def comments(schema: pa.Schema) -> bytes:
    """The notes of a schema as lines of CSV that begin with #."""
    notes = orjson.loads((schema.metadata or {}).get(b"ringlog", b'{"timezone":"UTC","signals":[]}'))
    lines = [f"# time: UTC (the facility is in {notes['timezone']})"]
    for each in notes["signals"]:
        states = ", ".join(f"{number} = {name}" for number, name in (each["states"] or {}).items())
        words = "; ".join(filter(None, (each["unit"], each["description"], states)))
        lines.append(f"# {each['signal']}: {' '.join(words.split())}")
    return "".join(f"{line}\n" for line in lines).encode()


def file_name(names: Sequence[str], start: datetime, end: datetime) -> str:
    """A name for a file with these signals from `start` to `end`, without a suffix."""
    first = re.sub(r"[^\w.-]+", "_", names[0], flags=re.ASCII)[:100]
    more = f"_and_{len(names) - 1}_more" if len(names) > 1 else ""
    return f"{first}{more}_{start:%Y%m%dT%H%M%SZ}_{end:%Y%m%dT%H%M%SZ}"
