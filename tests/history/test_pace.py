"""The limits of reading an old server: hours of the day, and values per second over all readers."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from ringlog.history.pace import Pace, hours_of
from ringlog.history.sources import tds


@pytest.mark.parametrize(
    ("hours", "now", "closed"),
    [
        ("22-06", "23:00", 0),
        ("22-06", "05:59", 0),
        ("22-06", "06:00", 16 * 60),
        ("22-06", "21:30", 30),
        ("8-17", "08:00", 0),
        ("8-17", "07:59", 1),
        ("0-24", "12:00", None),
        ("6-6", "12:00", None),
        ("25-3", "12:00", None),
        ("night", "12:00", None),
    ],
)
def test_hours(hours: str, now: str, closed: int | None) -> None:
    if closed is None:
        with pytest.raises(ValueError, match="is not a range of hours"):
            hours_of(hours)
        return
    moment = datetime.fromisoformat(f"2026-06-10 {now}")
    pace = Pace(hours=hours_of(hours), now=lambda: moment)
    assert pace.closed() == timedelta(minutes=closed)


def test_the_rate_applies_to_all_readers_together() -> None:
    pace, ended = Pace(rate=10_000), threading.Event()
    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [pace.passed(50, ended) for _ in range(10)], range(4)))
    assert time.monotonic() - begun >= 2000 / 10_000
    ended.set()
    pace.passed(10**9, ended)


class _Numbers:
    """Parts of ten batches. The first waits until the second has begun."""

    def __init__(self, fails: bool = False) -> None:
        self._parts = iter(range(6))
        self._second = threading.Event()
        self._fails = fails

    def next(self) -> int | None:
        return next(self._parts, None)

    def rows(self, server: Any, part: int, ended: threading.Event) -> Iterator[pa.RecordBatch]:
        if part == 0:
            assert self._second.wait(20)
        self._second.set()
        for number in range(10):
            if self._fails and (part, number) == (3, 5):
                raise ValueError("broken")
            yield pa.RecordBatch.from_arrays([pa.array([10 * part + number])], ["n"])


class _Server:
    def close(self) -> None:
        pass


def test_parts_of_several_connections_are_in_order() -> None:
    came = [*tds.in_order(_Numbers(), 2, _Server)]  # type: ignore[arg-type]
    assert [batch["n"][0].as_py() for _, batch in came if batch is not None] == [*range(60)]
    assert [part for part, batch in came if batch is None] == [*range(6)]


def test_an_error_is_raised_in_its_position() -> None:
    came: list[pa.RecordBatch | None] = []
    batches = tds.in_order(_Numbers(fails=True), 2, _Server)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="broken"):
        came.extend(batch for _, batch in batches)
    assert len([batch for batch in came if batch is not None]) == 35
