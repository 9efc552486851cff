"""The operators of the Archiver Appliance's API: `python -m ringlog_lab.operators`.

Milliseconds of CPU for each, over 28 days of a signal of 1 Hz (loess over a day) in memory, with bins of
600 s: readings of a 16-bit converter, at any part of a second, in parts of 65,536 samples.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

import numpy as np
import pyarrow as pa

from ringlog.history.signals import Location
from ringlog.retrieval.appliance.operators import processed
from ringlog.retrieval.appliance.pattern import parse_pv
from ringlog.retrieval.samples import Samples
from ringlog.schema.column_type import ColumnType
from ringlog.schema.moments import microseconds

OPERATORS = ("mean", "median", "skewness", "kurtosis", "caplotbinning", "linear", "ignoreflyers", "loess")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
_DAY = 86_400  # samples
_DAYS = {"loess": 1}
_PART = 1 << 16
_ROUNDS = 5


def main() -> None:
    """Prints the figures."""
    dice = np.random.default_rng(72)
    n = 28 * _DAY
    times = microseconds(BEGIN) + np.arange(n) * 1_000_000 + dice.integers(0, 900_000, n)
    values = pa.array(np.round(np.sin(np.arange(n) / 1e4) * 4000 + dice.normal(0, 3, n)) * 20 / 65_536)
    for operator in OPERATORS:
        days = _DAYS.get(operator, 28)
        took = []
        for _ in range(_ROUNDS):
            begun = time.process_time()
            end = BEGIN + timedelta(days=days)
            stream = _parts(times[: days * _DAY], values[: days * _DAY])
            wanted = parse_pv(f"{operator}_600(x)")
            events = sum(map(len, processed(stream, wanted, BEGIN, end, end)))
            took.append(time.process_time() - begun)
        print(f"{operator}_600 of {days} days: {median(took) * 1000:.1f} ms, {events} events", flush=True)


def _parts(times: np.ndarray, values: pa.Array) -> Iterator[Samples]:
    location = Location("x", "t", "c", ColumnType.of("double"), "A", None, None)
    for start in range(0, len(times), _PART):
        yield Samples(location, times[start : start + _PART], values.slice(start, _PART))


if __name__ == "__main__":
    main()
