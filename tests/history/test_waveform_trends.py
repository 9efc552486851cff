"""Trends of waveforms equal numpy's results from the same rows, whether from summaries, rows or the
archive."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.history.archive.archiving import archive
from ringlog.history.summaries.summarising import summarise
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install

from .trend_bins import Row, same

BEGIN = datetime(2026, 3, 2, 5, 6, 7, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CYCLE = timedelta(seconds=293)
ROWS = 650  # two days and a bit
COLUMNS = (
    Column("gain", "scope/gain", "real"),
    Column("trace", "scope/trace", "double[]", "V", points=100),
    Column("counts", "scope/counts", "bigint[]", points=100),
    Column("bits", "scope/bits", "bit[]", points=100),
    Column("note", "scope/note", "varchar(9)[]", points=2),
)
SCALARS = ("min", "max", "mean", "rms", "length")
Waveform = np.ndarray | None


@dataclass
class Scope:
    """A table of waveforms, and its rows: time, and the values by column."""

    connection: psycopg.Connection
    conninfo: str
    rows: dict[datetime, dict[str, Waveform]]

    def put(self, moment: datetime, **waveforms: Waveform) -> None:
        self.rows[moment] = dict.fromkeys(("trace", "counts", "bits")) | waveforms
        given = [None if each is None else each.tolist() for each in self.rows[moment].values()]
        self.connection.execute(
            "select ringlog.put_scope("
            "row (2, %s, 1, %s::float8[], %s::int8[], %s::bool[], null)::online.scope)",
            [moment, *given],
        )

    def trend(self, signal: str, begin: datetime, end: datetime, points: int = 100) -> list[Row]:
        query = "select * from ringlog.get_trend(%s, %s, %s, %s)"
        return self.connection.execute(query, [signal, begin, end, points]).fetchall()

    def waveform_trend(self, signal: str, begin: datetime, end: datetime) -> list[Row]:
        query = "select * from ringlog.get_waveform_trend(%s, %s, %s, 100)"
        return self.connection.execute(query, [signal, begin, end]).fetchall()

    def bins(
        self, column: str, width: timedelta, begin: datetime, end: datetime
    ) -> Iterator[tuple[datetime, list[Waveform]]]:
        of_bin: dict[datetime, list[Waveform]] = {}
        for moment in sorted(moment for moment in self.rows if begin <= moment < end):
            of_bin.setdefault(moment - (moment - EPOCH) % width, []).append(self.rows[moment][column])
        yield from sorted(of_bin.items())


def scalar_of(waveform: Waveform, scalar: str) -> float | None:
    """By numpy; NaN if no point is a number, None if there is no point."""
    if waveform is None:
        return None
    if scalar == "length":
        return float(len(waveform))
    if not len(waveform):
        return None
    points = waveform.astype(float)
    points = points[~np.isnan(points)]
    if not len(points):
        return math.nan
    with np.errstate(invalid="ignore"):
        if scalar == "rms":
            top = np.abs(points).max()
            return float(top if top in (0, np.inf) else top * np.sqrt(np.mean((points / top) ** 2)))
        return float(getattr(np, scalar)(points))


def trend_of(scope: Scope, column: str, scalar: str, *bins: object) -> list[Row]:
    rows: list[Row] = []
    for begin, waveforms in scope.bins(column, *bins):  # type: ignore[arg-type]
        values = [scalar_of(waveform, scalar) for waveform in waveforms]
        there = [value for value in values if value is not None]
        numbers = [value for value in there if not math.isnan(value)]
        of_numbers: tuple[object, ...] = (None,) * 5
        if numbers:
            of_numbers = (min(numbers), max(numbers), np.mean(numbers), numbers[0], numbers[-1])
        rows.append((begin, len(numbers), *of_numbers, len(there) - len(numbers), len(values) - len(there)))
    return rows


def waveform_trend_of(scope: Scope, column: str, *bins: object) -> list[Row]:
    rows: list[Row] = []
    for begin, waveforms in scope.bins(column, *bins):  # type: ignore[arg-type]
        there = [waveform for waveform in waveforms if waveform is not None]
        numbers = {
            scalar: np.array(
                [
                    value
                    for value in (scalar_of(each, scalar) for each in there)
                    if value is not None and value == value
                ]
            )
            for scalar in SCALARS
        }
        rows.append(
            (
                begin,
                len(there),
                *(
                    how(numbers[scalar]) if len(numbers[scalar]) else None
                    for scalar, how in (
                        ("min", np.min),
                        ("max", np.max),
                        ("mean", np.mean),
                        ("rms", lambda each: np.sqrt(np.mean(each**2))),
                        ("length", np.min),
                        ("length", np.max),
                    )
                ),
                len(waveforms) - len(there),
            )
        )
    return rows


def facility(folder: Path) -> Facility:
    table = Table("scope", 10, 293.0, COLUMNS, summaries=(600, 3600, 86_400))
    return Facility("test", "UTC", (table,), history=History(Retention(1, "week"), str(folder)))


@pytest.fixture
def scope(engine: sa.Engine, conninfo: str, tmp_path: Path) -> Iterator[Scope]:
    """A little more than two days of waveforms of any length, with all possible values; not summarised."""
    install(engine, facility(tmp_path))
    random = np.random.default_rng(20261120)
    rows: dict[datetime, dict[str, Waveform]] = {}
    for number in range(ROWS):
        trace: Waveform = random.normal(3.0, 5.0, random.integers(1, 100))
        match number % 23:
            case 1:
                trace = None
            case 2:
                trace = np.empty(0)
            case 3:
                trace[:] = np.nan
            case 4:
                trace[0] = np.nan
        if number % 200 < 15:  # hours without rows
            trace = (None, np.empty(0), np.array([np.nan]))[number % 3]
        rows[BEGIN + number * CYCLE] = {
            "trace": trace,
            "counts": random.integers(-(2**62), 2**62, random.integers(0, 9)),
            "bits": random.integers(0, 2, 8).astype(bool) if number % 7 else None,
        }
    with psycopg.connect(conninfo, autocommit=True) as connection:
        with connection.cursor().copy(
            "copy weeks.scope (seq_no, time, trace, counts, bits) from stdin (format binary)"
        ) as copy:
            copy.set_types(["int4", "timestamptz", "float8[]", "int8[]", "bool[]"])
            for moment, row in rows.items():
                copy.write_row(
                    (1, moment, *(None if each is None else each.tolist() for each in row.values()))
                )
        connection.execute("analyze weeks.scope")
        yield Scope(connection, conninfo, rows)


FIRST, LAST = BEGIN + timedelta(hours=1, seconds=1.5), BEGIN + timedelta(days=2)
MADE = BEGIN + timedelta(days=1, hours=12)
"""The summaries end here, and rows are read from here on."""


def agree(scope: Scope, begin: datetime = FIRST, end: datetime = LAST) -> None:
    # 100 bins at most of 47 hours: of half an hour each
    bins = (timedelta(minutes=30), begin, end)
    for column in ("trace", "counts", "bits"):
        for scalar in SCALARS:
            same(scope.trend(f"scope/{column}.{scalar}", begin, end), trend_of(scope, column, scalar, *bins))
        same(scope.waveform_trend(f"scope/{column}", begin, end), waveform_trend_of(scope, column, *bins))


def test_a_trend_is_of_summaries_and_of_the_newest_rows(scope: Scope) -> None:
    agree(scope)
    assert summarise(scope.conninfo, MADE, enough=1)
    agree(scope)
    ((n,),) = scope.connection.execute(
        "select sum(n) from hour.scope where column_name = 'trace.length'"
    ).fetchall()
    assert n > 300
    # the summaries alone answer for their time
    kept = {moment: row for moment, row in scope.rows.items() if moment >= MADE - timedelta(hours=2)}
    scope.connection.execute("delete from weeks.scope where time < %s", [MADE - timedelta(hours=2)])
    assert len(kept) < len(scope.rows)
    agree(scope, BEGIN - (BEGIN - EPOCH) % timedelta(minutes=30), LAST)


def test_late_and_repeated_rows(scope: Scope) -> None:
    summarise(scope.conninfo, MADE, enough=1)
    late = BEGIN + timedelta(hours=7, microseconds=1)
    scope.put(late, trace=np.array([1e6, -1e6, math.nan]), counts=np.arange(3), bits=np.ones(4, bool))
    agree(scope)
    assert summarise(scope.conninfo, MADE, enough=1)
    marks = "select count(*) from ringlog.summary_mark"
    assert scope.connection.execute(marks).fetchone() == (0,)
    agree(scope)
    scope.put(late, **scope.rows[late])
    assert scope.connection.execute(marks).fetchone() == (0,)


def test_infinities_and_values_without_a_square(scope: Scope) -> None:
    """As for scalars: an infinity is a number, and the sum of both infinities, NaN, is not."""
    begin = BEGIN - timedelta(days=3)
    begin -= (begin - EPOCH) % timedelta(hours=1)
    given = [
        [math.inf, 1.0],
        [-math.inf, 1.0, math.nan],
        [math.inf, -math.inf],
        [1e200, -3e200],
        [1e-200, 3e-200, 0.0],
        [5e-324, 1e-310],
        [1e-170, 1.0],
        [0.0, -0.0],
    ]
    hours = [begin + timedelta(hours=number) for number in range(len(given))]
    for moment, points in zip(hours, given, strict=True):
        scope.put(moment, trace=np.array(points))
    end = hours[-1] + timedelta(hours=1)
    expected = {scalar: [scalar_of(np.array(points), scalar) for points in given] for scalar in SCALARS}
    for made in (False, True):
        if made:
            summarise(scope.conninfo, MADE, enough=1)
        for scalar in SCALARS:
            found = scope.trend(f"scope/trace.{scalar}", begin, end, 10)
            assert [row[0] for row in found] == hours
            for row, wanted in zip(found, expected[scalar], strict=True):
                assert wanted is not None
                if math.isnan(wanted):
                    assert row[1:] == (0, None, None, None, None, None, 1, 0)
                else:
                    assert row[1:] == (1, *[pytest.approx(wanted, rel=1e-12, abs=0)] * 5, 0, 0), (scalar, row)
        found = scope.waveform_trend("scope/trace", begin, end)
        assert [row[5] for row in found] == [
            pytest.approx(root, rel=1e-12, abs=0) for root in expected["rms"]
        ]


def test_weeks_in_the_archive(
    scope: Scope,
) -> None:
    scope.connection.execute("select ringlog.make_week('scope', '2026-03-02')")
    summarise(scope.conninfo, MADE + timedelta(days=7), enough=1)
    done = [*archive(scope.conninfo, BEGIN + timedelta(days=30), pauses=0)]
    assert any("archived log.scope_2026w10" in line for line in done)
    assert scope.connection.execute("select count(*) from weeks.scope").fetchone() == (0,)
    begin = BEGIN - (BEGIN - EPOCH) % timedelta(minutes=30)
    end = LAST - (LAST - EPOCH) % timedelta(minutes=30)
    agree(scope, begin, end)
    for asked in (
        "ringlog.get_waveforms('scope/trace', %(begin)s, %(end)s)",
        "ringlog.get_waveforms('scope/trace', %(begin)s, %(end)s, every_nth => 2)",
        "ringlog.get_waveform('scope/trace', %(end)s)",
        "ringlog.get_waveform_points('scope/trace', %(end)s)",
    ):
        # none runs
        with pytest.raises(psycopg.OperationalError, match="archive server"):
            scope.connection.execute(f"select * from {asked}", {"begin": begin, "end": end})
    # where a newer one is here, nothing is missing
    newer = BEGIN + timedelta(days=20)
    scope.put(newer, trace=np.array([1.0]))
    newest = "select \"time\" from ringlog.get_waveform('scope/trace')"
    assert scope.connection.execute(newest).fetchall() == [(newer,)]
    # a row for that week, and other spans than those there are: both are read from the file
    scope.put(BEGIN + timedelta(hours=7, microseconds=1), trace=np.array([1e6]), counts=np.array([2**60 + 1]))
    summarise(scope.conninfo, MADE + timedelta(days=7), enough=1)
    agree(scope, begin, end)
    scope.connection.execute("truncate summary.scope")
    scope.connection.execute("update ringlog.summarised set until = null")
    summarise(scope.conninfo, MADE + timedelta(days=7), enough=1)
    agree(scope, begin, end)


def test_a_waveform_with_another_name(scope: Scope, engine: sa.Engine, tmp_path: Path) -> None:
    summarise(scope.conninfo, MADE, enough=1)
    before = scope.trend("scope/trace.rms", FIRST, MADE)
    columns = (
        COLUMNS[0],
        Column("wave", "scope/wave", "double[]", "V", points=100, renamed_from="trace"),
        *COLUMNS[2:],
    )
    install(
        engine, Facility("test", "UTC", (Table("scope", 10, 293.0, columns, summaries=(600, 3600, 86_400)),))
    )
    for signal in ("scope/wave.rms", "scope/trace.rms"):
        assert scope.trend(signal, FIRST, MADE) == before
    same(
        scope.trend("scope/wave.max", FIRST, MADE),
        trend_of(scope, "trace", "max", timedelta(minutes=30), FIRST, MADE),
    )


def test_a_signal_of_such_a_name_is_that_signal(scope: Scope, engine: sa.Engine, tmp_path: Path) -> None:
    other = Table("other", 10, 1.0, (Column("value", "scope/trace.rms", "real"),), summaries=(600,))
    install(engine, Facility("test", "UTC", (*facility(tmp_path).tables, other)))
    scope.connection.execute("select ringlog.put_other(row (1, %s, 7.5)::online.other)", [LAST])
    end = LAST + timedelta(hours=1)
    assert [row[1:3] for row in scope.trend("scope/trace.rms", LAST, end)] == [(1, 7.5)]
    with pytest.raises(errors.AmbiguousColumn, match=r"scope/trace\.rms"):
        scope.waveform_trend("scope/trace", FIRST, end)


def test_refusals(scope: Scope) -> None:
    for call, error, words in (
        ("get_trend('scope/trace')", errors.DatatypeMismatch, "is a waveform"),
        ("get_trend('scope/gain.rms')", errors.UndefinedObject, "there is no signal"),
        ("get_trend('scope/note.length')", errors.UndefinedObject, "there is no signal"),
        ("get_trend('scope/trace.median')", errors.UndefinedObject, "there is no signal"),
        ("get_waveform_trend('scope/note')", errors.DatatypeMismatch, "no waveform of numbers"),
        ("get_waveform_trend('scope/gain')", errors.DatatypeMismatch, "no waveform of numbers"),
    ):
        with pytest.raises(error, match=words):
            scope.connection.execute(f"select * from ringlog.{call}")


# --- trends and statistics of values that are no numbers agree with numpy, before and after summaries ---

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


@pytest.mark.parametrize(
    "until",
    [
        timedelta(hours=61),
        *(pytest.param(each, marks=pytest.mark.long) for each in (None, timedelta(days=6))),
    ],
)
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
        wanted = []
        for signal, begin, *_ in bins:
            first = (begin - MIDNIGHT) // timedelta(hours=1) * len(KINDS)
            values = [row[names.index(signal)] for _, row in rows[first : first + hours * len(KINDS)]]
            n, low, high, mean, _, _, *counts = by_numpy(values)
            wanted.append([n, low, high, mean, *counts])
        figures = [each[2:] for each in bins]
        assert [[each is None for each in one] for one in figures] == [
            [each is None for each in one] for one in wanted
        ]
        np.testing.assert_allclose(np.array(figures, float), np.array(wanted, float), rtol=1e-6, atol=1e-12)
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
