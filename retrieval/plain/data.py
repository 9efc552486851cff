"""Samples of many signals at once as Arrow tables."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import orjson
import pyarrow as pa

from ringlog.history.connection import Connection
from ringlog.history.reading import read
from ringlog.retrieval.encoding import lines
from ringlog.retrieval.plain.forms import TIME, formed
from ringlog.retrieval.plain.notes import described, noted, with_unit
from ringlog.retrieval.samples import Samples, at, samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.spans import Spans, chosen
from ringlog.schema.column_type import ColumnType

_BLOCK = 65_536  # samples encoded as JSON at once


def data(
    servers: Servers,
    signals: Sequence[Signal],
    start: datetime,
    end: datetime,
    form: str,
    limit: int | None = None,
    spans: Spans | None = None,
    *,
    comments: bool = False,
) -> Iterator[Part]:
    """The samples from `start` on and before `end`, signal by signal, each oldest first and at most `limit`;
    with `spans` those in them.

    One signal has the columns time and value, several have signal, time and value. With `comments` CSV begins
    with lines of notes. Raises Refused (400) for texts together with numbers, except in JSON and CSV.
    """

    def of(signal: Signal) -> Iterator[Samples]:
        return chosen(samples(servers, signal, start, end, limit=limit), spans)

    if form == "json":
        return as_json(signals, of)
    common = _common_type(signals, form)
    fields = [pa.field("time", TIME), with_unit("value", common or pa.null(), signals[0])]
    if len(signals) > 1:
        fields = [pa.field("signal", pa.string()), fields[0], pa.field("value", common or pa.null())]
    schema = noted(pa.schema(fields), servers, signals, start, end)

    def batches() -> Iterator[pa.RecordBatch]:
        for signal in signals:
            for part in of(signal):
                columns = [pa.array(part.time, TIME), cast(part, common or signal.type.arrow)]
                if len(signals) > 1:
                    columns.insert(0, pa.repeat(pa.scalar(signal.name), len(part)))
                if common is None:
                    yield pa.RecordBatch.from_arrays(columns, names=schema.names)
                else:
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return formed(form, schema, batches(), comments=comments)


def newest(servers: Servers, signals: Sequence[Signal], when: datetime) -> Iterator[bytes]:
    """The newest sample of each signal at or before an instant, if any, as JSON."""

    def of(signal: Signal) -> Iterator[Samples]:
        found = at(servers, signal, when)
        if found is not None:
            yield found

    return as_json(signals, of)


def rows(
    connection: Connection,
    table: str,
    columns: Sequence[tuple[str, ColumnType]],
    start: datetime,
    end: datetime,
    form: str,
) -> Iterator[Part]:
    """Rows of one table, with seq_no and these columns (name and type)."""
    schema = pa.schema(
        [("time", TIME), ("seq_no", pa.int32()), *((name, kind.arrow) for name, kind in columns)]
    )
    names = [field.name for field in schema][1:]
    batches = (
        pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)],
            schema=schema,
        )
        for batch in read(connection, table, names, start, end)
        if batch.num_rows
    )
    return formed(form, schema, batches)


def as_json(signals: Sequence[Signal], of: Callable[[Signal], Iterator[Samples]]) -> Iterator[bytes]:
    """Each signal as JSON has it, with its samples: [milliseconds since 1970, value]."""
    yield b'{"signals":['
    for index, signal in enumerate(signals):
        yield (b"," if index else b"") + orjson.dumps(described(signal))[:-1] + b',"samples":['
        first = True
        for part in of(signal):
            for begin in range(0, len(part), _BLOCK):
                block = part.slice(begin, min(begin + _BLOCK, len(part)))
                text = lines(b",[", ("thousandths", block.time), b",", ("json_bits", block.values), b"]")
                yield text[1:] if first else text
                first = False
        yield b"]}"
    yield b"]}\n"


def _common_type(signals: Sequence[Signal], form: str) -> pa.DataType | None:
    """The type of a column with the values of all; None where CSV has each signal's own."""
    types = {signal.type.arrow for signal in signals}
    if len(types) == 1:
        return types.pop()
    if any(pa.types.is_string(kind) or pa.types.is_list(kind) for kind in types):
        if form == "csv":
            return None
        words = (
            "texts, waveforms and numbers do not fit into one column: request each separately, csv or json, "
            "or wide=last"
        )
        raise Refused(400, words)
    return pa.float64()


def cast(part: Samples, kind: pa.DataType) -> pa.Array:
    """The values of samples in another type."""
    if part.values.type == kind:
        return part.values
    if pa.types.is_boolean(part.values.type):
        return part.values.cast(pa.int8()).cast(kind)
    return part.values.cast(kind, safe=False)
