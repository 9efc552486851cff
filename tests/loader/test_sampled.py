"""Samples of events: they are taken, or dropped and reported; the spool and its ledger store them."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringlog.clients import samples
from ringlog.clients.samples import Samples
from ringlog.clients.spool.spool import Spool
from ringlog.loader.samples import Sampler
from ringlog.loader.sources import Event, Wanted
from ringlog.loader.sources.properties import decimal_places, limit_properties, states_text
from ringlog.loader.statistics import Statistics
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import SamplePolicy, SampleTable
from ringlog.schema.moments import moment_of
from spools import put

SECOND = 10**9
NOW = time.time_ns() // SECOND * SECOND
NAMES = ["signals", "times", "samples", "severities", "statuses"]


class Taking:
    """A Sampler of signal 7, with the events that it has noted."""

    def __init__(
        self,
        kind: str = "double",
        deadband: str = "",
        latest: int = 0,
        *,
        policies: Sequence[SamplePolicy] = (),
        policy: str = "",
        **table: Any,
    ) -> None:
        self.notes: list[tuple[str, str]] = []
        self.statistics = Statistics()
        self.taker = Sampler(
            SampleTable("pvs", ColumnType.of(kind), **table),
            self.statistics,
            lambda kind, _time, message, _until, _rows: self.notes.append((kind, message)),
            policies,
        )
        self.taker.latest[7] = latest
        self.taker.change([Wanted(7, "PV", deadband, policy)])

    @property
    def policy(self) -> Any:
        """The policy that the writer reports."""
        self.taker.report_again()
        return self.taker.states()[0]["policy"]

    def take(self, *events: tuple[Any, ...], ends: bool = False) -> list[tuple[int, Any]]:
        """Times after NOW in nanoseconds, and values."""
        for event in events:
            moment = None if event[0] is None else NOW + event[0]
            self.taker.receive(Event(7, moment, *event[1:]))
        taken = self.taker.samples(ends=ends)
        return [(each - NOW, value) for each, value in zip(taken.times, taken.values, strict=True)]


def test_each_event_is_a_sample_and_a_repeated_one_is_not() -> None:
    own = Taking()
    assert own.take((1, 1.0), (2, 2.0), (2, 2.0)) == [(1, 1.0), (2, 2.0)]
    # a second value of the same time
    assert own.take((2, 3.0), (2, 4.0), (9, 5.0)) == [(3, 3.0), (4, 4.0), (9, 5.0)]
    # a clock that was set back
    assert own.take((-SECOND, 6.0)) == [(-SECOND, 6.0)]


def test_a_value_repeated_after_a_restart_is_not_a_sample() -> None:
    own = Taking(latest=NOW + 1)
    assert own.take((0, 1.0), (SECOND, 2.0)) == [(SECOND, 2.0)]
    assert Taking(latest=NOW).take((SECOND, 1.0)) == [(SECOND, 1.0)]


def test_only_samples_of_a_wrong_clock_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    own = Taking()
    never = 631_152_000 * SECOND - NOW
    ahead = 7200 * SECOND
    assert own.take((never, 1.0), (0, 2.0), (ahead, 3.0), (ahead, 4.0), (5, 5.0)) == [(0, 2.0), (5, 5.0)]
    assert [kind for kind, _ in own.notes] == ["clock", "clock"]
    assert "PV: its time stamp is 7200 s ahead" in own.notes[1][1]
    assert own.statistics.dropped == 3
    (state,) = own.taker.states()
    assert (state["number"], state["connected"], state["trouble"], state["dropped"]) == (7, True, None, 3)
    assert own.taker.states() == []


def test_a_deadband_omits_values_but_no_alarm() -> None:
    own = Taking(deadband="0.5")
    assert own.take((1, 1.0), (2, 1.4), (3, 1.6), (4, 1.7, 2, 3)) == [(1, 1.0), (3, 1.6), (4, 1.7)]
    own = Taking(deadband="10 %")
    assert own.take((1, 100.0), (2, 109.0), (3, 111.0)) == [(1, 100.0), (3, 111.0)]


def test_a_value_that_does_not_fit_is_named_once() -> None:
    own = Taking("smallint")
    assert own.take((1, 1), (2, 70_000), (3, 70_001), (4, 2)) == [(1, 1), (4, 2)]
    assert own.notes == [("unfit", "PV: 70000 is out of the range of smallint")]


def test_a_record_that_was_never_processed_and_then_does_not_fit() -> None:
    own = Taking("smallint")
    never = 631_152_000 * SECOND - NOW
    assert own.take((never, 1), (1, 70_000), (2, 70_001)) == []
    assert [kind for kind, _ in own.notes] == ["clock", "unfit"]
    (state,) = own.taker.states()
    assert state["trouble"] == "70000 is out of the range of smallint"


def test_a_waveform_is_a_sample() -> None:
    own = Taking("int[]", points=3)
    events = [
        (second, np.array(points)) for second, points in enumerate(([1, 2], [1, 2], [], [1.5], [0] * 4))
    ]
    repeated = [(0, np.array([1, 2]))]
    assert own.take(*events[:1], *repeated, *events[1:], (9, 7.0)) == [
        (0, b"\1\0\0\0\2\0\0\0"),
        (1, b"\1\0\0\0\2\0\0\0"),
        (2, b""),
    ]
    # the first of those that do not fit is named
    assert own.notes == [("unfit", "PV: point 0 is 1.5, which is not of type int")]
    assert own.statistics.dropped == 3


def test_a_lost_signal_has_no_value_until_it_returns() -> None:
    own = Taking()
    lost = own.take((1, 1.0), (None,), (None,))
    assert [value for _, value in lost] == [1.0, None]
    # the value from before holds again: from now on
    ((again, value),) = own.take((1, 1.0))
    assert (again > lost[1][0], value) == (True, 1.0)
    assert own.take((1, 1.0)) == []
    assert own.take((again + SECOND, 2.0), (None,))[0] == (again + SECOND, 2.0)
    # one that came before the loss was noticed has its own time too
    assert own.take((again + 2, 3.0))[1] == (again + 2, 3.0)
    own.notes = own.notes[:2]
    assert own.notes == [("disconnected", "PV"), ("connected", "PV")]
    never = Taking()
    never.taker.miss(seconds=-1.0)
    assert never.notes == [("disconnected", "PV")]
    assert never.taker.states()[0]["connected"] is False


SLOW = SamplePolicy("slow", period=10.0)
TENS = NOW // (10 * SECOND) * 10 * SECOND - NOW
"""A multiple of ten seconds, after NOW."""


def test_a_scan_takes_the_latest_event_of_each_period() -> None:
    own = Taking(policies=[SLOW])
    a, b, c = (TENS + each * SECOND for each in (0, 10, 20))
    # the first one at once
    assert own.take((a, 1.0), (a + 5, 2.0), (b - 1, 3.0), (b, 4.0)) == [(a, 1.0), (b - 1, 3.0)]
    assert own.take((b + 7, 5.0)) == []
    assert own.take((c, 6.0)) == [(b + 7, 5.0)]
    assert own.take() == []
    lost, (_, none) = own.take((None,))
    assert (lost, none) == ((c, 6.0), None)


def test_a_scan_has_the_last_event_before_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Taking(policies=[SLOW], deadband="0.5")
    assert own.take((TENS, 1.0), (TENS + 5, 2.0), (TENS + 6, 3.0)) == [(TENS, 1.0)]
    later = time.monotonic() + 9.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert own.take() == []
    later += 3.0
    assert own.take() == [(TENS + 6, 3.0)]
    # within the deadband, and at the end
    assert own.take((TENS + 7, 3.1), ends=True) == []
    assert own.take((TENS + 8, 4.0), ends=True) == [(TENS + 8, 4.0)]


def test_a_signals_own_policy_precedes_the_first_matching_one() -> None:
    policies = [
        SamplePolicy("motors", 5.0, record_types=("motor", "ai")),
        SamplePolicy("fast", 2.0, rate=3.0),
        SamplePolicy("others", address="X*"),
        SamplePolicy("p", address="P*"),
        SLOW,
    ]
    own = Taking(policies=policies)
    assert own.policy == "p"
    own.take((1, 1.0), (2, 2.0))
    own.taker.measure(seconds=0.0)
    assert own.policy == "fast"
    own.taker.describe(7, {"record_type": "ai"})
    own.take()
    assert own.policy == "motors"
    assert own.take((TENS, 3.0)) == []
    # every event again, also the one that waits
    own.taker.adopt([SamplePolicy("all")])
    assert own.take((TENS + 3, 4.0)) == [(TENS, 3.0), (TENS + 3, 4.0)]
    assert own.policy == "all"
    own.taker.adopt([])
    assert own.policy is None
    assert own.notes == []
    chosen = Taking(policies=policies, policy="others")
    chosen.taker.describe(7, {"record_type": "ai"})
    chosen.take()
    assert (chosen.policy, chosen.notes) == ("others", [])
    unknown = Taking(policies=policies, policy="gone")
    assert unknown.policy is None
    assert unknown.notes == [("policy", "PV: there is no policy 'gone': every event is taken")]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "A", True),
        ("VAC:*:P", "VAC:1:P", True),
        ("VAC:*:P", "VAC:1:PP", False),
        ("V?", "V1", False),
        ("V[1]", "V[1]", True),
    ],
)
def test_an_asterisk_is_the_only_special_character_of_a_policys_pattern(
    pattern: str, name: str, fits: bool
) -> None:
    assert SamplePolicy("p", address=pattern).applies(name, None, None) is fits


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("double", {"unit": "A", "limit_low": None, "description": "x"}),
        ("int", {"unit": "A", "limit_low": None, "description": "x", "states": '{"0": "OFF"}'}),
        ("text", {"description": "x"}),
    ],
)
def test_properties_of_a_source_are_reported_until_acknowledged(kind: str, kept: dict[str, Any]) -> None:
    own = Taking(kind)
    own.taker.describe(7, {"unit": "A", "limit_low": None, "states": '{"0": "OFF"}'})
    own.taker.describe(7, {"description": "x", "record_type": "ai"})
    own.take()
    (state,) = own.taker.states()
    assert state["reported"] == kept
    assert own.taker.states() == []
    own.taker.describe(7, {"description": "x"})
    own.take()
    assert own.taker.states() == []
    own.taker.describe(7, {"description": "y"})
    own.take()
    assert own.taker.states()[0]["reported"] == {**kept, "description": "y"}
    # the report was lost
    own.taker.report_again()
    assert own.taker.states()[0]["reported"] == {**kept, "description": "y"}


def test_changes_during_a_loss_have_its_time() -> None:
    def reported_at(own: Taking) -> str:
        return str(own.taker.states()[0]["reported_at"])

    own = Taking(latest=NOW)
    own.taker.describe(7, {"unit": "A"})
    own.take()
    assert reported_at(own) == moment_of(NOW // 1000 + 1).isoformat()
    _, (lost, _) = own.take((SECOND, 1.0), (None,))
    own.taker.describe(7, {"unit": "mA"})
    own.take((lost + SECOND, 2.0))
    assert reported_at(own) == moment_of((NOW + lost) // 1000 + 1).isoformat()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1.0, 2.0, (-1.0, 2.0)),
        (math.nan, 2.0, (None, 2.0)),
        (math.nan, math.nan, (None, None)),
        (-math.inf, 2.0, (None, 2.0)),
        (0.0, 0.0, (None, None)),
        (3.0, -3.0, (None, None)),
        (0.0, 9.0, (0.0, 9.0)),
        # integers of PV Access
        (0, 9, (None, 9.0)),
        (-9, 0, (-9.0, None)),
    ],
)
def test_limits_of_a_source(low: float, high: float, expected: tuple[float | None, float | None]) -> None:
    assert limit_properties(low, high, "alarm") == {"alarm_low": expected[0], "alarm_high": expected[1]}


def test_names_of_states_end_at_a_nul() -> None:
    assert states_text(["off", "", "on\0x"]) == '{"0": "off", "2": "on"}'
    assert states_text(["", "\0"]) is None


def test_digits_of_a_source() -> None:
    assert [decimal_places(digits) for digits in (-1, 0, 15, 99_999)] == [None, 0, 15, None]


def test_signals_that_change_are_subscribed_anew_and_others_are_not() -> None:
    own = Taking()
    other = Wanted(8, "OTHER", "")
    assert own.taker.change([Wanted(7, "PV", ""), other]) == ([other], [])
    moved = Wanted(7, "PV2", "")
    assert own.taker.change([moved, other]) == ([moved], [7])
    assert own.taker.change([other]) == ([], [7])
    own.taker.receive(Event(7, NOW, 1.0))
    assert not own.taker.samples().values


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [0.1, float("inf"), -2.5]),
        ("real", [0.5, None, 2.0]),
        ("bit", [1, 0, None]),
        ("bigint", [2**62, -1, 0]),
        ("text", ['a "b" \\ ä', "", None]),
        ("int[]", [b"\1\0\0\0\2\0\0\0", b"", None]),
    ],
)
def test_samples_survive_the_spool(kind: str, values: list[Any], tmp_path: Path) -> None:
    own = Samples()
    for index, value in enumerate(values):
        own.add(index, 3_600 * SECOND * index, value, index, 0)
    of = ColumnType.of(kind)
    names = [*NAMES, "lengths"] if of.is_array else NAMES
    spool = Spool(tmp_path / "pvs.spool", "pvs", names, 1, shares=samples.shares)
    put(spool, 5, own.stored(of))
    (row,) = spool.batch(0, spool.newest, 9, 10**6)
    assert Samples.joined([row.readings], of) == own
    spool.acknowledge([row], refused=[(0, 1)])
    spool.settle()
    assert [(hour.hour, hour.produced, hour.acknowledged, hour.refused) for hour in spool.hours()] == [
        (index * 3_600_000_000, 1, int(index > 0), int(index == 0)) for index in range(3)
    ]
    spool.close()


def test_packed_arrays_are_sent_with_the_places_of_nulls() -> None:
    own = Samples()
    for value in (1, None, 3):
        own.add(1, 2, value, 0, 0)
    sent = own.sent(ColumnType.of("smallint"), swaps=True)
    assert sent == {
        "signals": b"\0\0\0\1" * 3,
        "times": (b"\0" * 7 + b"\2") * 3,
        "samples": b"\0\1\0\0\0\3",
        "nulls": b"\0\0\0\2",
    }
    waves = Samples()
    for wave in (b"\1\0\2\0", None, b"", b"\3\0"):
        waves.add(1, 2, wave, 0, 0)
    sent = waves.sent(ColumnType.of("smallint[]"), swaps=True)
    assert (sent["samples"], sent["nulls"]) == (b"\0\1\0\2\0\3", b"\0\0\0\2")
    assert sent["lengths"] == b"\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\1"
    assert [len(part) for part in waves.parts(4)] == [3, 1]
    assert [part.values for part in waves.parts(1)] == [[b"\1\0\2\0"], [None, b""], [b"\3\0"]]
    text = Samples()
    text.add(1, 2, 'a "b" \\', 0, 3)
    assert text.sent(ColumnType.of("text"), swaps=False)["samples"] == '{"a \\"b\\" \\\\"}'
