"""Operators, compared with a simple implementation of the appliance's user guide."""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlog.history.signals import Location
from ringlog.retrieval.appliance.operators import processed
from ringlog.retrieval.appliance.pattern import parse_pv
from ringlog.retrieval.samples import Samples
from ringlog.schema.column_type import ColumnType
from ringlog.schema.moments import microseconds

START = datetime(2026, 11, 20, 14, 0, 0, tzinfo=UTC)
END = START + timedelta(seconds=60)
LOCATION = Location("x", "t", "c", ColumnType.of("double"), "A", None, None)
WIDTH = 10

Pairs = list[tuple[float, float | None]]
"""seconds after START, and a value"""


def stream(pairs: Pairs, sizes: int) -> Iterator[Samples]:
    for begin in range(0, len(pairs), sizes):
        part = pairs[begin : begin + sizes]
        time = np.array([microseconds(START) + round(second * 1e6) for second, _ in part], np.int64)
        yield Samples(LOCATION, time, pa.array([value for _, value in part], pa.float64()))


def made(pv: str, pairs: Pairs, sizes: int = 3, now: datetime = END) -> list[tuple[float, object]]:
    """Seconds after START and value of each event."""
    found: list[tuple[float, object]] = []
    for events in processed(stream(pairs, sizes), parse_pv(pv), START, END, now):
        seconds = (events.nanoseconds - microseconds(START) * 1000) / 1e9
        found += zip(seconds.tolist(), events.values.to_pylist(), strict=True)
    return found


OF_VALUES = {
    "mean": np.mean,
    "min": min,
    "max": max,
    "count": len,
    "std": lambda values: np.std(values, ddof=1) if len(values) > 1 else 0.0,
    "popvariance": np.var,
    "median": np.median,
    "rms": lambda values: np.sqrt(np.mean(np.square(values))),
}

samples_of_a_minute = st.lists(
    st.tuples(st.integers(0, 59).map(float), st.none() | st.floats(-1e6, 1e6) | st.sampled_from((inf, -inf))),
    unique_by=lambda pair: pair[0],
).map(sorted)


@pytest.mark.parametrize("operator", OF_VALUES)
@given(pairs=samples_of_a_minute, sizes=st.integers(1, 7))
def test_figures_of_bins(operator: str, pairs: Pairs, sizes: int) -> None:
    """One event for each bin with samples, in its middle, however the samples are divided into parts.

    The appliance's collectors ignore NaN, and a bin without other samples has the figures of no samples: NaN,
    and a count of 0 (SummaryStatistics of Apache Commons Math).
    """
    expected: list[tuple[float, object]] = []
    for number in range(6):
        of_bin = [value for second, value in pairs if second // WIDTH == number]
        values = [value for value in of_bin if value is not None]
        none = 0 if operator == "count" else None
        if of_bin:
            with np.errstate(invalid="ignore"):
                value = OF_VALUES[operator](values) if values else none
            expected.append((number * WIDTH + WIDTH / 2, value))
    got = made(f"{operator}Sample_{WIDTH}(x)", pairs, sizes)
    assert [time for time, _ in got] == [time for time, _ in expected]
    assert [value for _, value in got] == [
        value if value is None else pytest.approx(value, rel=1e-9, abs=1e-3, nan_ok=True)
        for _, value in expected
    ]


@pytest.mark.parametrize("sizes", range(1, 8))
@pytest.mark.parametrize("operator", ["mean", "max", "median", "stats", "optimized_5", "loess"])
def test_bins_have_the_greatest_severity_of_their_samples(operator: str, sizes: int) -> None:
    """Like the appliance's SummaryStatsPostProcessor: currentMaxSeverity, which begins at 0 and grows with
    the events; a row without a reading is not an event there. A bin without a reading is INVALID, 3; one
    without rows has the severity of the value that it shows."""
    pairs: Pairs = [(1, 1.0), (2, 2.0), (3, 3.0), (11, 4.0), (12, None), (31, 5.0), (32, 6.0)]
    severities = [0, 2, 1, 0, 0, 1, 1]

    def parts() -> Iterator[Samples]:
        for begin, part in zip(range(0, len(pairs), sizes), stream(pairs, sizes), strict=True):
            yield replace(part, severity=np.array(severities[begin : begin + sizes]))

    pv = f"{operator}(x)" if operator == "optimized_5" else f"{operator}_{WIDTH}(x)"
    given = parse_pv(pv)
    found = [
        int(severity)
        for events in processed(parts(), given, START, END, START + timedelta(seconds=49))
        for severity in (events.alarms or ([0] * len(events), []))[0]
    ]
    if operator == "optimized_5":  # bins of 12 seconds: 0 to 11, 12 to 23, …
        assert found == [2, 3, 1, 1, 1]
    else:
        assert found == [2, 0, 3, 1, 1]


def test_a_bin_without_readings_shows_none() -> None:
    """Nor do the bins after it, until there is a reading again."""
    pairs: Pairs = [(1, 20.0), (11, None), (12, None), (31, 7.0)]
    values = [20.0, None, None, 7.0, 7.0, 7.0, 7.0]
    assert [value for _, value in made("mean_10(x)", pairs)] == values
    assert [value for _, value in made("lastFill_10(x)", pairs)] == values
    assert [value for _, value in made("count_10(x)", pairs)] == [1, 0, 0, 1, 0, 0, 0]


def test_numbers_may_also_follow_the_signal() -> None:
    """Its servlet splits at brackets and commas: mean(x,60) is mean_60(x)."""
    assert parse_pv("mean(x,60)") == parse_pv("mean_60(x)")
    assert parse_pv("flyers(x, 60, 2.5)") == parse_pv("flyers_60_2.5(x)")
    assert parse_pv("mean_60(a,b)").signal == "a,b"


@pytest.mark.parametrize("operator", ["firstSample", "lastSample", "firstFill", "lastFill"])
def test_picked_samples_keep_their_type_and_alarm(operator: str) -> None:
    """Like FirstSamplePP, LastSample and FillsCollectorEventStream: the event itself, of any type."""
    location = Location("x", "t", "c", ColumnType.of("varchar(9)"), "", None, None)
    time = microseconds(START) + np.array([1, 2, 11, 31]) * 1_000_000
    values = pa.array(["a", "b", None, "d"])
    alarms = np.array([1, 2, 0, 0]), np.array([4, 3, 0, 0])
    found = []
    for part in (
        Samples(location, time[:3], values[:3], None, alarms[0][:3], alarms[1][:3]),
        Samples(location, time[3:], values[3:], None, alarms[0][3:], alarms[1][3:]),
    ):
        found.append(part)
    events = [
        *processed(iter(found), parse_pv(f"{operator}_10(x)"), START, END, START + timedelta(seconds=41))
    ]
    assert {str(each.kind) for each in events} == {"varchar(9)"}
    got = [value for each in events for value in each.values.to_pylist()]
    both = [pair for each in events for pair in zip(*each.alarms or ([0], [0]), strict=False)]
    chosen = "a" if operator.startswith("first") else "b"
    alarm = (1, 4) if chosen == "a" else (2, 3)
    if operator.endswith("Fill"):
        assert got == [chosen, None, None, "d", "d"]
        assert both == [alarm, (3, 17), (3, 17), (0, 0), (0, 0)]
    else:
        assert got == [chosen, None, "d"]
        assert both == [alarm, (3, 17), (0, 0)]


def test_a_sample_before_the_interval_counts_in_its_first_bin() -> None:
    """FirstFill and LastFill of the appliance use the bin's number, its figures the time."""
    begin = START + timedelta(seconds=5)
    pairs: Pairs = [(3, 3.0), (7, 7.0), (12, 12.0)]
    found = {}
    for operator in ("firstFill", "lastFill", "firstSample", "mean"):
        events = processed(stream(pairs, 3), parse_pv(f"{operator}_10(x)"), begin, END, START)
        found[operator] = [value for each in events for value in each.values.to_pylist()][:3]
    assert found == {
        "firstFill": [3.0, 12.0],
        "lastFill": [7.0, 12.0],
        "firstSample": [3.0, 12.0],
        "mean": [3.0, 7.0, 12.0],
    }


def test_a_bin_without_samples_shows_the_value_before_it() -> None:
    """Not the figures of an earlier bin: its issue 111."""
    pairs: Pairs = [(-5, 1.0), (1, 20.0), (2, 40.0), (9, 5.0), (41, 7.0)]
    assert made("mean_10(x)", pairs) == [
        (-5.0, 1.0),
        (5.0, pytest.approx(65 / 3)),
        (15.0, 5.0),
        (25.0, 5.0),
        (35.0, 5.0),
        (45.0, 7.0),
        (55.0, 7.0),
        (65.0, 7.0),
    ]
    assert [value for _, value in made("count_10(x)", pairs)] == [1, 3, 0, 0, 0, 1, 0, 0]


def test_bins_to_come_are_not_filled() -> None:
    assert made("mean_10(x)", [(1, 2.0)], now=START + timedelta(seconds=15)) == [(5.0, 2.0), (15.0, 2.0)]


@given(pairs=samples_of_a_minute, sizes=st.integers(1, 7))
def test_filled_bins_follow_each_other(pairs: Pairs, sizes: int) -> None:
    """No event twice and none out of order: its issues 324 and 333."""
    times = [time for time, _ in made("optimized_5(x)", pairs, sizes)]
    if sum(value is not None for _, value in pairs) > 5:
        assert times == sorted(set(times))


def test_few_samples_are_returned_unchanged() -> None:
    pairs: Pairs = [(-5, 1.0), (1, 20.0), (2, None)]
    assert made("optimized_3(x)", pairs) == pairs


def test_many_samples_are_returned_as_five_figures() -> None:
    pairs: Pairs = [(second, float(second)) for second in range(30)]
    got = made("optimized_6(x)", pairs)
    # mean, standard deviation, min, max, n
    assert got[0] == (5.0, [4.5, pytest.approx(statistics.stdev(range(10))), 0.0, 9.0, 10.0])
    assert got[3] == (35.0, [29.0, 0.0, 29.0, 29.0, 0.0])


def test_nth_counts_from_the_first_of_the_interval() -> None:
    pairs: Pairs = [(-1, 0.0), *((second, float(second)) for second in range(10))]
    for sizes in range(1, 8):
        assert [value for _, value in made("nth_4(x)", pairs, sizes)] == [0.0, 4.0, 8.0]


def test_ncount_counts_samples_in_the_interval() -> None:
    assert made("ncount(x)", [(-1, 0.0), (1, 1.0), (2, None)]) == [(0.0, 2)]


def test_first_and_last_samples_keep_their_times() -> None:
    pairs: Pairs = [(1, 1.0), (3, 3.0), (7, 7.0), (12, 12.0)]
    assert made("firstSample_10(x)", pairs) == [(1.0, 1.0), (12.0, 12.0)]
    assert made("lastSample_10(x)", pairs) == [(7.0, 7.0), (12.0, 12.0)]
    assert made("lastFill_30(x)", pairs) == [(15.0, 12.0), (45.0, 12.0), (75.0, 12.0)]


def test_plot_bins_have_first_least_greatest_and_last() -> None:
    """At the times of the appliance's CAPlotBinning.SampleLocation: (int) (0.25 * intervalSecs) is 2."""
    pairs: Pairs = [(1, 5.0), (2, 1.0), (3, 9.0), (5, 6.0), (11.7, 2.0), (21, 3.0), (22.9, 4.0)]
    assert made("caplotbinning_10(x)", pairs) == [
        (0.0, 5.0),
        (2.0, 1.0),
        (5.0, 9.0),
        (7.0, 6.0),
        (11.0, 2.0),
        (21.0, 3.0),
        (22.0, 4.0),
    ]


def test_a_dead_band_omits_small_steps() -> None:
    pairs: Pairs = [(1, 1.0), (2, 1.4), (3, 2.1), (4, 2.0), (5, None), (6, 2.0)]
    assert made("deadBand_1(x)", pairs) == [(1.0, 1.0), (3.0, 2.1), (5.0, None), (6.0, 2.0)]


def test_a_dead_band_keeps_changes_of_severity() -> None:
    """If alarm severity changes, write out current value: the appliance's DeadBand."""
    parts = [
        replace(part, severity=np.array([0, 0, 1, 1])) for part in stream([(1, 1), (2, 1), (3, 1), (4, 1)], 4)
    ]
    found = [*processed(iter(parts), parse_pv("deadBand_1(x)"), START, END, END)]
    assert [
        int(time - microseconds(START) * 1000) // 10**9 for each in found for time in each.nanoseconds
    ] == [1, 3]


def test_lines_between_samples() -> None:
    """In the middle of bins, as in the appliance; linearSample omits bins without samples."""
    assert made("linearSample_10(x)", [(0, 0.0), (20, 2.0), (25, 4.0)]) == [(5.0, 0.5), (25.0, 4.0)]
    assert made("linear_10(x)", [(0, 0.0), (20, 2.0), (25, 4.0)]) == [(5.0, 0.5), (15.0, 1.5), (25.0, 4.0)]


@pytest.mark.parametrize("sizes", range(1, 7))
def test_lines_have_the_greatest_severity_of_their_bin(sizes: int) -> None:
    """The appliance's LinearInterpolation is a SummaryStatsPostProcessor: currentMaxSeverity of the bin's
    events. A bin without any shows the severity of the sample before."""
    pairs: Pairs = [(0, 0.0), (1, 0.1), (9, 0.9), (20, 2.0), (28, 2.8), (33, 3.3)]
    severities = [0, 0, 2, 1, 0, 0]

    def parts() -> Iterator[Samples]:
        for begin, part in zip(range(0, len(pairs), sizes), stream(pairs, sizes), strict=True):
            yield replace(part, severity=np.array(severities[begin : begin + sizes]))

    def found(pv: str) -> list[tuple[float, int]]:
        return [
            (float(value), int(severity))
            for events in processed(parts(), parse_pv(pv), START, END, END)
            for value, severity in zip(
                events.values.to_numpy(), (events.alarms or ([0] * len(events), []))[0], strict=True
            )
        ]

    close = pytest.approx
    assert found("linear_10(x)") == [(close(0.5), 2), (close(1.5), 2), (close(2.5), 1)]
    assert found("linearSample_10(x)") == [(close(0.5), 2), (close(2.5), 1)]


def test_fills_of_odd_widths_have_whole_seconds() -> None:
    """binNum * intervalSecs + intervalSecs / 2, in whole numbers: the appliance's FillsCollectorEventStream.
    Its SummaryStatsCollectorEventStream adds half a second where the width is odd."""
    pairs: Pairs = [(1, 1.0), (6, 2.0)]
    # bins of 5 seconds from 1970 on begin at START
    assert made("firstFill_5(x)", pairs, now=START + timedelta(seconds=9)) == [(2.0, 1.0), (7.0, 2.0)]
    assert made("lastFill_5(x)", pairs, now=START + timedelta(seconds=9)) == [(2.0, 1.0), (7.0, 2.0)]
    assert made("meanSample_5(x)", pairs) == [(2.5, 1.0), (7.5, 2.0)]


@pytest.mark.parametrize("operator", ["skewness", "kurtosis"])
def test_equal_values_have_no_shape(operator: str) -> None:
    """Skewness.evaluate and Kurtosis.evaluate of Apache Commons Math 3.3, which the appliance calls by
    DescriptiveStatistics, divide 0 by a deviation of 0: NaN. It is a value, and no sample is INVALID."""
    pairs: Pairs = [(float(second), 0.1) for second in range(7)]
    (events,) = processed(stream(pairs, 3), parse_pv(f"{operator}Sample_10(x)"), START, END, END)
    assert np.isnan(events.values.to_numpy()).tolist() == [True]
    assert events.alarms is None


def test_a_stored_nan_is_not_a_missing_reading() -> None:
    """NaN comes from the source; for the appliance it is a value with the severity of its event, and is left
    out of figures (Mean.addEvent: if !Double.isNaN)."""

    def parts() -> Iterator[Samples]:
        for part in stream([(1, 1.0), (2, None), (11, None), (21, None), (22, None)], 5):
            values = pa.array([1.0, float("nan"), float("nan"), None, float("nan")], pa.float64())
            yield replace(part, values=values)

    (events,) = processed(parts(), parse_pv("x"), START, END, END)
    assert events.alarms is not None
    assert [int(severity) for severity in events.alarms[0]] == [0, 0, 0, 3, 0]
    assert [int(status) for status in events.alarms[1]] == [0, 0, 0, 17, 0]
    means = [*processed(parts(), parse_pv("meanSample_10(x)"), START, END, END)]
    nan = pytest.approx(np.nan, nan_ok=True)
    assert [value for each in means for value in each.values.to_pylist()] == [1.0, nan, nan]
    assert [each.alarms for each in means] == [None] * len(means)
    (empty,) = processed(stream([(1, None)], 1), parse_pv("meanSample_10(x)"), START, END, END)
    assert empty.values.to_pylist() == [None]
    assert empty.alarms is not None
    assert (int(empty.alarms[0][0]), int(empty.alarms[1][0])) == (3, 17)


def test_flyers_are_far_from_the_mean_of_their_bin() -> None:
    """|value - mean| <= deviations * std: the appliance's documentation of ignoreflyers."""
    pairs: Pairs = [*((float(second), float(second % 2)) for second in range(30)), (29.5, 100.0)]
    far: Pairs = [(29.5, 100.0)]
    for sizes in range(1, 8):
        assert made("flyers_60_4.5(x)", pairs, sizes) == far
        assert made("ignoreflyers_60_4.5(x)", pairs, sizes) == pairs[:-1]
    # six deviations are more than any of 31 samples can be away (Samuelson's inequality)
    assert made("flyers_60_6(x)", pairs) == []
    assert made("flyers_10(x)", [(1, 7.0), (11, 8.0), (12, None)]) == []
    assert made("ignoreflyers_10(x)", [(1, 7.0), (11, 8.0), (12, None)]) == [(1.0, 7.0), (11.0, 8.0)]


def test_flyers_are_also_of_the_sample_before_the_interval() -> None:
    """Fliers and IgnoreFliers of the appliance take each event of the stream, which begins with that sample;
    one alone in its bin has a deviation of 0 and is never far."""
    pairs: Pairs = [(-3, 5.0), (1, 7.0), (2, 8.0)]
    assert made("ignoreflyers_10(x)", pairs) == [(-3.0, 5.0), (1.0, 7.0), (2.0, 8.0)]
    assert made("flyers_10(x)", pairs) == []
    # in the bin of the interval's first samples it counts with them
    far: Pairs = [(-31, 100.0), *((float(second), 1.0 + second % 2) for second in range(25))]
    assert made("flyers_10800_3(x)", far) == [(-31.0, 100.0)]


def test_loess_smooths_and_ignores_outliers() -> None:
    """A straight line is its own regression (Cleveland 1979), and one bad sample does not bend it."""
    pairs: Pairs = [(float(second), 3.0 * second - 1) for second in range(60)]
    [(when, value)] = made("loessSample_60(x)", pairs)
    assert (when, value) == (30.0, pytest.approx(89.0))
    rough: Pairs = [(second, value + (-1) ** int(second)) for second, value in pairs if value is not None]
    rough[31] = (31.0, 132.0)
    assert made("loessSample_60(x)", rough)[0][1] == pytest.approx(89.0, abs=1.5)
    # binNum*intervalSecs + intervalSecs/2, in whole numbers: the appliance's LoessInterpolation
    halves: Pairs = [(second / 2, 3.0 * second) for second in range(10)]
    assert made("loessSample_5(x)", halves) == [(2.5, pytest.approx(12.0))]
    # few samples allow no regression: the first of them is returned, as in the appliance
    assert made("loessSample_60(x)", [(1, 5.0), (2, 7.0)]) == [(30.0, 5.0)]


def test_two_weeks_are_complete_and_older_ones_sparse() -> None:
    """The first sample of each 15 minutes up to two weeks ago, which is START + 30 s here."""
    pairs: Pairs = [(second, float(second)) for second in range(60)]
    now = START + timedelta(days=14, seconds=30)
    for sizes in range(1, 8):
        assert made("twoweek(x)", pairs, sizes, now=now) == [(0.0, 0.0), *pairs[30:]]
