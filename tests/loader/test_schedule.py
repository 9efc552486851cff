"""The instants at which a writer works, and its pauses after failures."""

import itertools

import pytest

from ringlog.clients.pauses import growing_pauses
from ringlog.loader import schedule as schedule_of_cycles
from ringlog.loader.schedule import SECOND, Schedule
from ringlog.loader.statistics import Statistics


def test_instants_never_drift() -> None:
    schedule = Schedule.of("sr_mag_ps", 0.3)
    due = schedule.after(1_700_000_000 * SECOND)
    for number in range(10_000):
        # each step is requested late, by up to most of a cycle
        due, previous = schedule.after(due + number * 7919 % 299_000, due), due
        assert due == previous + 300_000


def test_a_timer_that_rings_early_does_not_repeat_an_instant() -> None:
    schedule = Schedule(cycle=1000, phase=10)
    assert schedule.after(9_999, previous=10_010) == 11_010
    assert schedule.after(10_009) == 10_010
    assert schedule.after(10_010) == 11_010


def test_late_writers_miss_whole_cycles_and_remain_in_step() -> None:
    schedule = Schedule(cycle=1000, phase=10)
    due = schedule.after(15_500, previous=11_010)
    assert due == 16_010
    assert schedule.missed(11_010, due) == 4
    assert schedule.missed(11_010, 12_010) == 0


def test_a_clock_set_back_stops_nothing() -> None:
    schedule = Schedule(cycle=1000, phase=10)
    due = schedule.after(5_500, previous=11_010)
    assert due == 6_010
    assert schedule.missed(11_010, due) == 0


def test_tables_of_a_cycle_start_at_different_phases() -> None:
    phases = [Schedule.of(f"table_{number}", 30.0).phase / SECOND for number in range(60)]
    assert all(0 <= phase < 30 for phase in phases)
    # every third of the cycle gets its share
    assert all(sum(low <= phase < low + 10 for phase in phases) >= 10 for low in (0, 10, 20))


def test_pauses_double_up_to_the_longest() -> None:
    pauses = list(itertools.islice(growing_pauses(0.1, 5.0), 12))
    for pause, whole in zip(pauses, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, *[5.0] * 6], strict=True):
        assert whole / 2 <= pause <= whole
    assert len(set(pauses)) == len(pauses)


def test_a_clock_set_back_does_not_delay_the_next_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    # the wall clock at each look at it: an hour is taken off between an instant's computation and its wait
    clock = iter([5, 3_600_000_005, 5])
    monkeypatch.setattr(schedule_of_cycles, "now", lambda: next(clock))
    waits: list[float] = []
    instants = Schedule(cycle=1000, phase=10).instants(waits.append, Statistics())
    assert [next(instants) for _ in range(3)] == [10, 3_600_000_010, 10]
    assert all(0 < seconds <= 0.001 for seconds in waits)
