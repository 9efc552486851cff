"""The signals: search, and the description of each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa
from psycopg import sql

from ringlog.history.connection import Connection, records, rows
from ringlog.history.summaries import waveforms
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.texts import query
from ringlog.retrieval.words import search_query
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import SCALARS

LONGEST = 1000  # characters of a name or pattern

_OF_WAVEFORMS = re.compile(rf"(.+)\.({'|'.join(SCALARS)})", re.DOTALL)


@dataclass(frozen=True)
class Signal:
    """A signal with its current or last properties. `limits` are low and high in `unit`; None: no limit."""

    name: str
    table: str
    column: str
    type: ColumnType
    """as returned by `shown_type`"""
    unit: str
    description: str
    limits: tuple[float | None, float | None] | None
    """one of them may be None: no limit"""
    alarm_limits: tuple[float | None, float | None] | None = None
    """wider than `limits`"""
    states: dict[str, str] | None = None
    """names of whole numbers"""
    held: bool = False
    """whether each value holds until the next"""
    decimals: int | None = None
    """digits behind the point, as its source shows it"""
    now: bool = True
    """whether it is still logged"""
    was: tuple[dict[str, Any], ...] = ()
    """its former properties, the oldest first: `until` (milliseconds since 1970), unit, description, limits,
    alarm_limits, states, held"""
    cycle: float | None = None
    """approximate seconds from row to row of its log; None: unknown"""
    scalar: str | None = None
    """one of ringlog.schema.layout.SCALARS of the waveform in its column; None: the column itself"""
    is_of_samples: bool = False
    """whether its table has samples; `column` is then the signal's number"""
    nodes: tuple[str | None, ...] = (None,)
    """the servers with rows of it, the current one last: nodes, or None for the first server"""

    @property
    def node(self) -> str | None:
        """Its current or last node."""
        return self.nodes[-1]

    @property
    def is_number(self) -> bool:
        """Whether its values are single numbers: neither texts nor waveforms."""
        return self.type.is_number


def describe(servers: Servers, names: Sequence[str]) -> dict[str, Signal]:
    """These signals, without those that never existed. Raises Refused for a node that cannot be reached."""
    found = {signal.name: signal for signal in _described(servers, names)}
    scalars = {name: waveform_of(name) for name in names if name not in found}
    stored = {part[0] for part in scalars.values() if part is not None}
    known = {signal.name: signal for signal in _described(servers, sorted(stored))} if stored else {}
    for name, part in scalars.items():
        if part is not None and part[0] in known and is_waveform(known[part[0]]):
            found[name] = scalar_of(known[part[0]], part[1])
    return found


def _described(servers: Servers, names: Sequence[str]) -> list[Signal]:
    kept = servers.registry(None)
    unknown = [name for name in names if ("signal", name) not in kept]
    read = {signal.name: signal for signal in _read(servers, unknown)} if unknown else {}
    for name in unknown:
        # a node has a registry of its own
        if name not in read or read[name].nodes == (None,):
            kept["signal", name] = read.get(name)
    found = (read[name] if name in read else kept["signal", name] for name in names)
    return [signal for signal in found if signal is not None]


def _read(servers: Servers, names: Sequence[str]) -> list[Signal]:
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in records(servers.first, query("describe", names=sql.Literal(list(names)))):
        rows_of.setdefault(row["signal"], []).append(row)
    newest = {name: rows[-1] for name, rows in rows_of.items()}
    for node in sorted({row["node"] for row in newest.values() if row["node"] is not None}):
        own = [name for name, row in newest.items() if row["node"] == node]
        # the node has the cycles of its tables
        text = query("describe", names=sql.Literal(own))
        newest |= {row["signal"]: row for row in records(servers.of(node), text)}
    return [
        replace(_signal(row), nodes=tuple(row["node"] for row in rows_of[name]))
        for name, row in newest.items()
    ]


def waveform_of(name: str) -> tuple[str, str] | None:
    """The signal and scalar of a name such as `trace.rms` that is not the name of a signal; otherwise
    None."""
    found = _OF_WAVEFORMS.fullmatch(name)
    return (found[1], found[2]) if found else None


def is_waveform(signal: Signal) -> bool:
    """Whether it is a waveform of numbers."""
    return signal.type.is_packed


def scalar_of(waveform: Signal, scalar: str) -> Signal:
    return replace(
        waveform,
        name=f"{waveform.name}.{scalar}",
        type=ColumnType(Kind.DOUBLE),
        unit="" if scalar == "length" else waveform.unit,
        description=f"{scalar} of {waveform.description or waveform.name}",
        limits=None,
        alarm_limits=None,
        scalar=scalar,
    )


def reduced(values: pa.Array, scalar: str | None) -> pa.Array:
    """The scalars of waveforms; other values unchanged."""
    if scalar is None:
        return values
    if pa.types.is_boolean(values.type.value_type):
        values = values.cast(pa.list_(pa.int8()))
    scalars, missing = waveforms.of_lists(values)
    column = SCALARS.index(scalar)
    return pa.array(scalars[:, column], mask=missing[:, column])


def demand(servers: Servers, names: Sequence[str]) -> list[Signal]:
    """These signals in their order. Raises Refused (404) with the first name that never existed."""
    known = describe(servers, names)
    for name in names:
        if name not in known:
            raise Refused(
                404,
                f"there is no signal {name!r}: ringlog signals WORDS finds signals, over HTTP "
                "/api/v1/signals?search=WORDS",
            )
    return [known[name] for name in names]


def search(connection: Connection, text: str, limit: int, offset: int = 0) -> list[Signal]:
    """Current signals that contain all words of a text (see `search_query`)."""
    found = records(connection, search_query(text, limit, offset))
    return [
        _signal(row) if row["scalar"] is None else scalar_of(_signal(row), row["scalar"]) for row in found
    ]


def as_of(signal: Signal, time: datetime) -> Signal:
    """The signal with the properties that it had at a time, which has a zone."""
    for index, former in enumerate(signal.was):
        if time.timestamp() * 1000 < former["until"]:
            properties = {name: value for name, value in former.items() if name != "until"}
            return replace(signal, **properties, was=signal.was[:index])
    return signal


def matching(connection: Connection, pattern: str, limit: int | None = None) -> list[str]:
    """Names that match a regular expression as a whole, in their order.

    A leading (?i) ignores case. Raises ReadError (2201B) for an invalid regular expression.
    """
    operator = "~"
    if pattern.startswith("(?i)"):
        operator, pattern = "~*", pattern.removeprefix("(?i)")
    text = query(
        "matching",
        operator=sql.SQL(operator),
        pattern=sql.Literal(f"^(?:{pattern})$"),
        limit=sql.SQL("all") if limit is None else sql.Literal(limit),
    )
    return [row["signal"] for row in records(connection, text)]


def latest(connection: Connection, table: str, columns: Sequence[str]) -> pa.RecordBatch | None:
    """The newest row of a ring: `time` and these columns; None if it was never written."""
    text = query(
        "latest",
        columns=sql.SQL(", ").join(sql.Identifier("ring", column) for column in dict.fromkeys(columns)),
        ring=sql.Identifier("online", table),
    )
    found = [batch for batch in rows(connection, text) if batch.num_rows]
    return found[0] if found else None


def shown_type(kind: ColumnType) -> ColumnType:
    """The reported type of a column: double for numeric, varchar without a length for datetime and text."""
    match kind.kind:
        case Kind.NUMERIC:
            return ColumnType(Kind.DOUBLE)
        case Kind.DATETIME | Kind.TEXT:
            return ColumnType(Kind.VARCHAR)
    return kind


def _signal(row: dict[str, Any]) -> Signal:
    limits, alarm_limits = (
        None if (pair := (row[f"{kind}_low"], row[f"{kind}_high"])) == (None, None) else pair
        for kind in ("limit", "alarm")
    )
    cycle = row.get("cycle")
    if cycle is not None:
        cycle = max(cycle * row["log_nth"], row["log_period"] or 0.0)
    return Signal(
        row["signal"],
        row["table_name"],
        row["column_name"],
        shown_type(ColumnType.of(row["type"])),
        row["unit"],
        row["description"],
        limits,
        alarm_limits,
        None if row["states"] is None else orjson.loads(row["states"]),
        row["held"],
        row["decimals"],
        row.get("now", True),
        tuple(orjson.loads(row.get("was") or "[]")),
        cycle,
        is_of_samples=row.get("is_of_samples", False),
    )
