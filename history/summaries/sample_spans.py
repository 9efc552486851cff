"""Computes the summaries of tables of samples: spans of each signal's values, and of its severities.

The columns of a table's summaries are its signals' numbers, as `17`, followed by their severities, as
`17.severity`. Severities of spans without an alarm are all 0 and not stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq, sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from ringlog.history.arrays import sent
from ringlog.history.summaries.spans import COUNTS, NAMES, Spans, combined, no_figures, of_rows
from ringlog.schema.column_type import TYPES
from ringlog.schema.layout import LOG_TABLES

if TYPE_CHECKING:
    import pyarrow as pa

SEVERITY = ".severity"

_HOUR = 3_600_000_000_000  # nanoseconds
_ENOUGH = 500_000
"""samples in memory at once, and the rest of an hour"""
_PER_SIGNAL = 2**32
"""more than the number of any span"""

_BLOCKS = """
select signal, times, samples, severities from {log}
where signal = any(%s) and "time" >= %s and "time" < %s
order by signal, "time"
"""


@dataclass(frozen=True)
class Samples:
    """Samples ordered by signal and time. `times` are nanoseconds since 1970; values where `nulls` is set do
    not count."""

    number: NDArray[np.integer[Any]]
    times: NDArray[np.int64]
    values: NDArray[np.float64]
    nulls: NDArray[np.bool_]
    severities: NDArray[np.float64]


def of_blocks(
    connection: psycopg.Connection, table: str, signals: Sequence[int], start: object, end: object
) -> Iterator[Samples]:
    """The samples of signals in the log, from the begin of an hour on and before the begin of another: all of
    a signal and an hour together."""
    query = sql.SQL(_BLOCKS).format(log=sql.Identifier(LOG_TABLES, table))
    gathered: list[tuple[int, Any, Any, Any]] = []
    size, before = 0, None
    with connection.cursor("blocks", binary=True) as cursor:
        for oid, column_type in TYPES.items():
            if column_type.is_packed:
                cursor.adapters.register_loader(oid, _Arrays)
        cursor.itersize = 256
        for block in cursor.execute(query, [[*signals], start, end]):
            at = block[0], int(block[1][0][0]) // _HOUR
            if size > _ENOUGH and at != before:
                yield _joined(gathered)
                gathered, size = [], 0
            gathered.append(block)
            size += len(block[1][0])
            before = at
    if gathered:
        yield _joined(gathered)


def of_batch(batch: "pa.RecordBatch") -> Samples:
    """The samples of a batch as the archive has them."""
    values = batch["value"].cast("float64", safe=False)
    return Samples(
        batch["number"].to_numpy(),
        batch["time"].cast("int64").to_numpy() * 1000 + batch["nanoseconds"].to_numpy(),
        values.to_numpy(zero_copy_only=False),
        values.is_null().to_numpy(zero_copy_only=False),
        batch["severity"].to_numpy().astype(np.float64),
    )


def spans_of(parts: Iterable[Samples], signals: Sequence[int], level: int) -> tuple[int, Spans | None]:
    """The number of samples, and the spans of some signals, which ascend, with the columns of `signals`."""
    rows = 0
    made: list[Spans] = []
    for part in parts:
        position = np.searchsorted(signals, part.number)
        key = position * _PER_SIGNAL + part.times // (level * 1_000_000_000)
        if len(key):
            no = np.zeros(len(key), np.bool_)
            figures = np.column_stack([part.values, part.severities])
            made.append(of_rows(key, figures, np.column_stack([part.nulls, no])))
        rows += len(key)
    if not made:
        return rows, None
    # a span may be in two parts
    together = combined(Spans.together(made), 1)
    return rows, _spread(together, len(signals))


def filled(spans: Spans) -> Spans:
    """Spans with the severities 0 of those without an alarm."""
    half = spans.n.shape[1] // 2
    n = spans.rows[:, :half]
    none = spans.n[:, half:] == 0
    figures = {name: getattr(spans, name).copy() for name in NAMES}
    for name in ("min", "max", "mean", "first", "last", "squares"):
        figures[name][:, half:][none & (n > 0)] = 0.0
    figures["n"][:, half:][none] = n[none]
    return replace(spans, **figures)


def without_alarms(spans: Spans) -> Spans:
    """Spans without those severities that are all 0."""
    half = spans.n.shape[1] // 2
    none = ~(spans.max[:, half:] > 0)
    figures = {name: getattr(spans, name).copy() for name in NAMES}
    for name, values in figures.items():
        values[:, half:][none] = 0 if name in COUNTS else np.nan
    return replace(spans, **figures)


def _spread(spans: Spans, signals: int) -> Spans:
    """Spans of a value and a severity, each of one signal, as spans of all signals."""
    position, number = np.divmod(spans.numbers, _PER_SIGNAL)
    numbers, row = np.unique(number, return_inverse=True)
    figures = no_figures((len(numbers), 2 * signals))
    for name, values in figures.items():
        for column in (0, 1):
            values[row, position + column * signals] = getattr(spans, name)[:, column]
    return Spans(numbers, **figures)


def _joined(blocks: Sequence[tuple[int, Any, Any, Any]]) -> Samples:
    lengths = [len(times[0]) for _, times, _, _ in blocks]
    number = np.repeat([signal for signal, *_ in blocks], lengths)
    times = np.concatenate([times for _, (times, _), _, _ in blocks])
    values = np.concatenate([values for _, _, (values, _), _ in blocks]).astype(np.float64)
    nulls = np.concatenate(
        [
            np.zeros(n, np.bool_) if there is None else ~there
            for n, (_, _, (_, there), _) in zip(lengths, blocks, strict=True)
        ]
    )
    severities = np.concatenate(
        [np.zeros(n) if given is None else given[0] for n, (*_, given) in zip(lengths, blocks, strict=True)]
    ).astype(np.float64)
    if ((number[1:] == number[:-1]) & (times[1:] < times[:-1])).any():  # blocks that are not merged yet
        order = np.lexsort((times, number))
        number, times, values, nulls, severities = (
            each[order] for each in (number, times, values, nulls, severities)
        )
    return Samples(number, times, values, nulls, severities)


class _Arrays(Loader):
    """Loads arrays as numpy arrays, each with the mask of the values that are not null."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> tuple[np.ndarray, NDArray[np.bool_] | None]:
        return sent(bytes(data), TYPES[self.oid].octets)
