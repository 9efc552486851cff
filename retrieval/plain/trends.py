"""Trends: few points for any interval, each with min, max and mean of its samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from ringlog.history.arrays import sent
from ringlog.history.closed import text_of, whole
from ringlog.history.connection import Connection, ReadError
from ringlog.history.summaries.copying import POSTGRES_EPOCH
from ringlog.retrieval.bins import Bins, binned
from ringlog.retrieval.plain.forms import TIME, formed
from ringlog.retrieval.plain.notes import described, noted
from ringlog.retrieval.samples import Samples, count, samples
from ringlog.retrieval.servers import Servers
from ringlog.retrieval.serving.parts import Part
from ringlog.retrieval.serving.refused import Refused
from ringlog.retrieval.signals import Signal
from ringlog.retrieval.spans import Spans, chosen
from ringlog.retrieval.texts import text
from ringlog.schema.moments import microseconds

_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
IN_ARCHIVE = "RL003"
"""rows are in the archive, and summaries are too coarse (demand_online.sql)"""
SCHEMA = pa.schema(
    [
        ("time", TIME),
        ("n", pa.int64()),
        ("min", pa.float64()),
        ("max", pa.float64()),
        ("mean", pa.float64()),
        ("first", pa.float64()),
        ("last", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Trend:
    """Points of a trend. `width` is the width of each in microseconds; 0: the points are samples."""

    signal: Signal
    width: int
    table: pa.RecordBatch


def width_of(start: datetime, end: datetime, points: int) -> int:
    """Microseconds of a point, for at most `points`: a round number of seconds from 1 s on."""
    span = max(microseconds(end) - microseconds(start), 1)
    exact = -(-span // points)
    if exact <= 1_000_000:
        # 1, 2, 5, 10, … microseconds to a second
        power = int(10 ** max(0, len(str(exact)) - 1))
        return next(step * power for step in (1, 2, 5, 10) if step * power >= exact)
    for step in _STEPS:
        if step * 1_000_000 >= exact:
            return step * 1_000_000
    day = 86_400 * 1_000_000
    return -(-exact // day) * day


def trend(
    servers: Servers, signal: Signal, start: datetime, end: datetime, points: int, spans: Spans | None = None
) -> Trend:
    """A signal from `start` on and before `end` in at most `points` points and one at each end; with `spans`
    of the samples in them.

    At most so many samples are returned unchanged. Rows without a reading do not count. Raises Refused (400)
    for text.
    """
    if not signal.is_number:
        raise Refused(400, f"signal {signal.name!r} is {signal.type} and has no trend: request its data")
    if count(servers, signal, start, end, points) <= points:
        return Trend(signal, 0, _as_they_are([*chosen(samples(servers, signal, start, end), spans)]))
    # each server summarises its own rows
    if len(signal.nodes) == 1:
        try:
            return _of_summaries(servers.of(signal.node), signal, start, end, points, spans)
        except ReadError as error:
            if error.sqlstate != IN_ARCHIVE:
                raise
    width = width_of(start, end, points)
    parts = [*binned(chosen(samples(servers, signal, start, end), spans), width)]
    return Trend(signal, width, _of_bins(Bins.joined(parts), width) if parts else _batch([[]] * 7))


def _of_summaries(
    connection: Connection, signal: Signal, start: datetime, end: datetime, points: int, spans: Spans | None
) -> Trend:
    found = connection.answer(
        text("plain/get_trend"),
        signal.name.encode(),
        *(text_of(microseconds(each)) for each in (start, end)),
        str(points).encode(),
        b"{(,)}" if spans is None else spans.literal.encode(),
    )
    if (time := found.get_value(0, 0)) is None:
        return Trend(signal, 0, _batch([[]] * 7))
    columns: list[Any] = [sent(time, "i8")[0] + POSTGRES_EPOCH]
    for position, field in enumerate([*SCHEMA][1:], 1):
        values, valid = sent(found.get_value(0, position) or b"", "i8" if field.name == "n" else "f8")
        columns.append(pa.array(values, field.type, mask=None if valid is None else ~valid))
    return Trend(signal, whole(found.get_value(0, 7)), _batch(columns))


def trend_json(trends: Iterator[Trend], start: datetime, end: datetime) -> Iterator[bytes]:
    """Trends as JSON: times in milliseconds since 1970, figures in columns."""
    head = {"from": microseconds(start) / 1000, "to": microseconds(end) / 1000}
    yield orjson.dumps(head)[:-1] + b',"signals":['
    for number, each in enumerate(trends):
        columns: dict[str, Any] = {
            field.name: each.table.column(index).to_numpy(zero_copy_only=False)
            for index, field in enumerate(SCHEMA)
            if field.name != "time"
        }
        time = each.table.column(0).cast(pa.int64()).to_numpy(zero_copy_only=False) / 1000
        content = described(each.signal) | {"width": each.width / 1e6, "time": time} | columns
        yield (b"," if number else b"") + orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    yield b"]}\n"


def trend_table(
    form: str,
    trends: Iterator[Trend],
    servers: Servers,
    signals: Sequence[Signal],
    times: tuple[datetime, datetime],
    *,
    comments: bool = False,
) -> Iterator[Part]:
    """Trends of these signals as one table, with the signal's name as the first column."""
    schema = noted(SCHEMA.insert(0, pa.field("signal", pa.string())), servers, signals, *times)

    def batches() -> Iterator[pa.RecordBatch]:
        for each in trends:
            names = pa.repeat(pa.scalar(each.signal.name), each.table.num_rows)
            yield pa.RecordBatch.from_arrays([names, *each.table.columns], schema=schema)

    return formed(form, schema, batches(), comments=comments)


def _as_they_are(parts: list[Samples]) -> pa.RecordBatch:
    if not parts:
        return _batch([[]] * 7)
    time = np.concatenate([part.time for part in parts])
    values = pa.array(np.concatenate([part.numbers for part in parts]), pa.float64(), from_pandas=True)
    n = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.int64)
    return _batch([time, n, values, values, values, values, values])


def _of_bins(bins: Bins, width: int) -> pa.RecordBatch:
    columns = [bins.number * width, bins.n, bins.min, bins.max, bins.mean, bins.first, bins.last]
    return _batch([column[bins.n > 0] for column in columns])


def _batch(columns: list[Any]) -> pa.RecordBatch:
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
