"""Tables of samples whose values are waveforms."""

from typing import Any

import pytest
from psycopg import errors

from .conftest import NS0, T0, Traces, at


def test_waveforms_are_samples(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    call: list[Any] = [[one, two, one, one], [NS0 + 7, NS0 + 1, NS0 + 2, NS0 + 3_000_000_000]]
    call += [[[1.0, 2.0], [3.0], [], None], [2, 0, 0, 0]]
    for _ in range(2):
        traces.waves(*call)
    assert traces.put("gauge:2", at("2026-03-02 12:00:02"), [4.0, 5.0, 6.0, 7.0], 1, 4) == 0
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]
    assert traces.samples("gauge:2") == [(1, [3.0]), (2_000_000_000, [4.0, 5.0, 6.0, 7.0])]
    # the ring has two of each signal
    assert traces.rows("select signal, value, severity from online.vac order by signal, time") == [
        ("gauge:1", [1.0, 2.0], 2),
        ("gauge:1", None, 0),
        ("gauge:2", [3.0], 0),
        ("gauge:2", [4.0, 5.0, 6.0, 7.0], 1),
    ]
    assert traces.rows("select value, severity from ringlog.get_vac_at(%s)", at("2026-03-02 12:00:01")) == [
        ([1.0, 2.0], 2),
        ([3.0], 0),
    ]
    assert [row[4] for row in traces.rows("select * from ringlog.signal_states()")] == [None, "4 points"]
    # each is a block, and housekeeping leaves it so
    assert set(traces.merge()) == {0}
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]


def test_waveforms_of_samples_are_read_as_those_of_rows(traces: Traces) -> None:
    one = traces.number("gauge:1")
    times = [NS0 + second * 10**9 for second in range(5)]
    traces.waves([one] * 5, times, [[1.0, 3.0], [2.0], [5.0], None, None])
    assert traces.rows("select * from ringlog.get_waveform('gauge:1')") == [
        (at("2026-03-02 12:00:02"), [5.0])
    ]
    assert traces.rows("select value from ringlog.get_waveform('gauge:1', %s)", T0) == [([1.0, 3.0],)]
    assert traces.rows("select * from ringlog.get_waveform('gauge:1', %s)", at("2026-03-01 12:00:00")) == []
    assert traces.rows("select value from ringlog.get_waveforms('gauge:1', every_nth => 2)") == [
        ([1.0, 3.0],),
        ([5.0],),
    ]
    assert traces.rows("select * from ringlog.get_waveform_points('gauge:1', %s)", T0) == [(0, 1.0), (1, 3.0)]
    trend = "select n, min, max, mean from ringlog.get_trend('gauge:1.max', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 2.0, 5.0, pytest.approx(10 / 3))]
    trend = "select n, shortest, longest, nulls from ringlog.get_waveform_trend('gauge:1', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 1, 2, 2)]
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_signal('gauge:1')")
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_latest('gauge:1')")


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ("array[1.0, 2.0], lengths => array[3]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, 2.0], lengths => array[2, 0]", errors.ArraySubscriptError, "an element for each sample"),
        ("array[1.0, 2.0]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, null], lengths => array[2]", errors.ArraySubscriptError, "without a NULL among"),
        ("array[[1.0], [2.0]], lengths => array[2]", errors.ArraySubscriptError, "of one dimension"),
        (
            "array[1.0, 2.0, 3.0, 4.0, 5.0], lengths => array[5]",
            errors.StringDataRightTruncation,
            "has 5 points, and the facility file allows at most 4",
        ),
    ],
)
def test_wrong_waveforms_are_errors(
    traces: Traces, arguments: str, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        traces.rows(f"select ringlog.put_vac_batch(array[1], array[{NS0}], {arguments})")
    assert traces.value("select count(*) from log.vac") == 0


def test_another_waveform_of_the_same_time_is_refused(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    traces.waves([one], [NS0], [[1.0, 2.0]])
    for waves in ([[3.0], [1.0]], [[3.0], None]):
        with pytest.raises(errors.UniqueViolation, match="another sample of signal 'gauge:1'"):
            traces.waves([two, one], [NS0, NS0], waves)
    assert traces.samples("gauge:2") == []
    # one that is stored, and another twice in a call
    traces.waves([two, one, two], [NS0 + 9, NS0, NS0 + 9], [[8.0, 9.0], [1.0, 2.0], [8.0, 9.0]])
    assert traces.samples("gauge:2") == [(9, [8.0, 9.0])]
    # of a paused signal they are dropped, and the others are stored
    traces.rows("select ringlog.pause_signal('gauge:1')")
    traces.waves([one, two, one, two], [NS0 + 1, NS0 + 1, NS0 + 2, NS0 + 2], [[9.0], [3.0], None, [4.0, 5.0]])
    assert traces.samples("gauge:2") == [(1, [3.0]), (2, [4.0, 5.0]), (9, [8.0, 9.0])]
    assert traces.samples() == [(0, [1.0, 2.0])]
