"""Trends and statistics of values that are no numbers agree with numpy, before and after summaries."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from ringlog.history.summaries.summarising import summarise
from ringlog.schema.facility import Column, Facility, Table
from ringlog.schema.installing.install import install

LEVELS = (60, 600, 3600, 86_400)
KINDS = (2.5, -1.25, math.nan, math.inf, -math.inf, None)
SETS = [
    [value for number, value in enumerate(KINDS) if chosen >> number & 1]
    for chosen in range(1, 2 ** len(KINDS))
]
"""every combination of a reading's kinds"""


@pytest.fixture
def of_all_kinds(engine: sa.Engine, conninfo: str) -> Iterator[psycopg.Connection]:
    """A signal for each combination, which it has in even hours; in odd hours all signals have the
    combinations in turn."""
    columns = tuple(Column(f"c{number}", f"kinds/{number}", "double") for number in range(len(SETS)))
    install(engine, Facility("test", "UTC", (Table("kinds", 10, 1.0, columns, summaries=LEVELS),)))
    with psycopg.connect(conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("copy weeks.kinds from stdin") as copy:
            for time, row in rows_of_all_kinds():
                copy.write_row((1, time, *row))
        yield connection


def rows_of_all_kinds() -> Iterator[tuple[datetime, list[float | None]]]:
    for hour in range(2 * len(SETS)):
        for second in range(len(KINDS)):
            row = []
            for own in SETS:
                values = own if hour % 2 == 0 else SETS[hour // 2]
                row.append(values[min(second, len(values) - 1)])
            yield MIDNIGHT + timedelta(hours=hour, minutes=10 * second, seconds=second), row


MIDNIGHT = datetime(2026, 3, 4, tzinfo=UTC)


def by_numpy(values: list[float | None]) -> tuple[float | None, ...]:
    """n, min, max, mean, std, rms, nans and nulls"""
    existing = [value for value in values if value is not None]
    numbers = np.array([value for value in existing if not math.isnan(value)])
    counts = len(numbers), len(existing) - len(numbers), len(values) - len(existing)
    if not len(numbers):
        return counts[0], None, None, None, None, None, *counts[1:]
    with np.errstate(invalid="ignore"):
        figures = (
            numbers.min(),
            numbers.max(),
            numbers.mean(),
            numbers.std(),
            np.sqrt(np.square(numbers).mean()),
        )
    return counts[0], *map(float, figures), *counts[1:]


@pytest.mark.parametrize("until", [None, timedelta(hours=61), timedelta(days=6)])
def test_figures_are_numpys_before_and_after_summaries(
    of_all_kinds: psycopg.Connection, conninfo: str, until: timedelta | None
) -> None:
    """NaN and null are left out; infinities count. `until`: the rows before it are summarised."""
    if until is not None:
        summarise(conninfo, MIDNIGHT + until, enough=1)
    rows = [*rows_of_all_kinds()]
    names = [f"kinds/{number}" for number in range(len(SETS))]
    end = MIDNIGHT + timedelta(hours=2 * len(SETS))
    for hours in (1, 2, 24):
        bins = of_all_kinds.execute(
            "select signal, time, n, min, max, mean, nans, nulls"
            " from ringlog.signal_bins(%s, %s, %s, %s, 'epoch')",
            [names, MIDNIGHT, end, timedelta(hours=hours)],
        ).fetchall()
        assert len(bins) == len(SETS) * -(-2 * len(SETS) // hours)
        for signal, begin, *figures in bins:
            number = names.index(signal)
            values = [row[number] for time, row in rows if begin <= time < begin + timedelta(hours=hours)]
            n, low, high, mean, _, _, *counts = by_numpy(values)
            assert figures == pytest.approx([n, low, high, mean, *counts], nan_ok=True), (signal, begin)
    for number, name in enumerate(names):
        # whole hours, and parts of hours at both ends
        for begin, past in ((0, 124), (number + 0.3, number + 1.2), (number, 2 * number + 2)):
            bounds = [MIDNIGHT + timedelta(hours=hour) for hour in (begin, past)]
            found = of_all_kinds.execute(
                "select n, min, max, mean, std, rms, nans, nulls from ringlog.get_statistics(%s, %s, %s)",
                [name, *bounds],
            ).fetchone()
            wanted = by_numpy([row[number] for time, row in rows if bounds[0] <= time < bounds[1]])
            assert found == pytest.approx(wanted, nan_ok=True), (name, bounds)
    if until is not None:
        shown = of_all_kinds.execute("select mean, std from day.kinds where n > 0").fetchall()
        assert None not in [figure for row in shown for figure in row]
