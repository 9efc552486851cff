"""The readings that make a row."""

import itertools
import math
import re
import time
from dataclasses import replace
from itertools import chain, islice

import pytest

from ringlog.clients.pauses import growing_pauses
from ringlog.gateway import _core
from ringlog.loader import schedule as schedule_of_cycles
from ringlog.loader.sampling import Cells, Filter
from ringlog.loader.schedule import SECOND, Schedule, now
from ringlog.loader.sources import Reading, Row
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Deadband, Sampling, Table

NOON = 1_780_000_000_000_000


def table(*deadbands: Deadband | None, cycle: float = 0.04, **sample: object) -> Table:
    columns = tuple(
        Column(f"c{number}", f"s{number}", "double", deadband=deadband)
        for number, deadband in enumerate(deadbands)
    )
    return Table("t", 10, cycle, columns, sample=Sampling(**sample))  # type: ignore[arg-type]


def wait(seconds: float) -> None:
    time.sleep(max(0.0, seconds))


@pytest.mark.parametrize(
    ("deadband", "before", "after", "is_moved"),
    [
        (None, 1.0, 1.0, False),
        (None, 1.0, 1.0000001, True),
        (Deadband(0.5), 1.0, 1.5, False),
        (Deadband(0.5), 1.0, 1.51, True),
        (Deadband(0.5), 1.0, None, True),
        (Deadband(0.5), None, None, False),
        (Deadband(0.5), 1.0, float("nan"), True),
        (Deadband(0.01, relative=True), -200.0, -201.9, False),
        (Deadband(0.01, relative=True), -200.0, -202.1, True),
        (Deadband(0.01, relative=True), 5.0, math.inf, True),
        (Deadband(0.01, relative=True), math.inf, 6.0, True),
        (Deadband(0.01, relative=True), math.inf, -math.inf, True),
        (Deadband(0.01, relative=True), math.inf, math.inf, False),
        (Deadband(2.0, relative=True), -1e308, 1.7e308, True),
        (Deadband(0.5), 2**53, 2**53 + 1, True),
        (Deadband(1.0), 2**53, 2**53 + 1, False),
    ],
)
def test_a_moved_reading(deadband: Deadband | None, before: Reading, after: Reading, is_moved: bool) -> None:
    assert _core.moved([deadband], [before], [after]) is is_moved


def taken(cells: Cells, count: int) -> list[Row]:
    return [*islice(chain.from_iterable(cells.rows(wait)), count)]


def test_rows_without_changes_are_omitted_up_to_the_longest_period() -> None:
    def kept_of(policy: Table) -> list[float]:
        kept = Filter(policy)
        readings = [1.0, 1.2, 1.4, 1.6, 1.6, 1.6, 1.6]
        rows = [Row.of(NOON + number * SECOND, (one,)) for number, one in enumerate(readings)]
        return [(row.time - NOON) / SECOND for row in rows if kept.takes(row)]

    assert kept_of(table(None)) == [0, 1, 2, 3, 4, 5, 6]
    assert kept_of(table(Deadband(0.5))) == [0, 3]
    assert kept_of(table(Deadband(0.5), max_period=2.0)) == [0, 2, 4, 6]


def test_monitored_updates_make_rows_by_their_times_and_none_is_omitted() -> None:
    statistics = Statistics()
    cells = Cells(table(None, None, mode="monitor"), statistics)
    # the first column's updates come in a burst, those of the second after them
    for column in (0, 1):
        for number in range(5):
            cells.set([(column, float(10 * column + number))], NOON + number * 100_000 + column)
    rows = taken(cells, 5)
    assert [row.values for row in rows] == [(float(number), 10.0 + number) for number in range(5)]
    assert [row.time for row in rows] == [NOON + number * 100_000 + 1 for number in range(5)]
    # two updates of a column within a cycle are two rows
    cells.set([(0, 7.0)], NOON + SECOND)
    cells.set([(0, 8.0)], NOON + SECOND + 1)
    assert [row.values for row in taken(cells, 2)] == [(7.0, 14.0), (8.0, 14.0)]
    assert statistics.dropped == 0


def test_a_stamp_far_ahead_moves_no_other_reading() -> None:
    cells = Cells(table(None, None, mode="monitor", clock_drift=60.0), Statistics())
    noted: list[tuple[object, ...]] = []
    begun = now()

    def update(column: int, reading: float, ahead: int) -> None:
        name = f"PV:{column}"
        stamp = cells.plausible(now() + ahead * SECOND, name, lambda *event: noted.append(event))
        cells.set([(column, reading)], stamp)

    update(0, 1.0, 0)
    update(1, 2.0, 2 * 86_400)
    update(1, 3.0, 2 * 86_400)
    rows = taken(cells, 2)
    update(0, 4.0, 0)
    update(1, 5.0, 30)
    update(1, 6.0, 2 * 86_400)
    rows += taken(cells, 3)
    assert [row.values for row in rows] == [(1.0, 2.0), (1.0, 3.0), (4.0, 3.0), (4.0, 5.0), (4.0, 6.0)]
    assert all(begun <= row.time <= now() + 30 * SECOND for row in rows)
    assert [kind for kind, *_ in noted] == ["clock", "clock"]
    took = (now() - begun) // SECOND + 1
    for _, _, words, *_ in noted:
        told = re.fullmatch(
            r"PV:1: its time stamp is (\d+) s ahead: its readings get the present time", str(words)
        )
        assert told
        assert 2 * 86_400 - took <= int(told[1]) <= 2 * 86_400


def test_a_row_has_the_nanoseconds_of_its_latest_reading() -> None:
    below = Column("nanoseconds", "t/nanoseconds", "smallint")
    base = table(None, None, mode="monitor")
    cells = Cells(replace(base, columns=(*base.columns, below)), Statistics())
    cells.set([(0, 1.0)], NOON, 900)
    cells.set([(1, 2.0)], NOON + 5, 7)
    cells.set([(0, 3.0)], NOON + SECOND, 123)
    rows = taken(cells, 2)
    assert [row.values for row in rows] == [(1.0, 2.0, 7), (3.0, 2.0, 123)]
    assert [row.time for row in rows] == [NOON + 5, NOON + SECOND]


def test_a_shortest_period_drops_and_counts() -> None:
    statistics = Statistics()
    cells = Cells(table(None, mode="monitor", min_period=0.2), statistics)
    for number in range(10):
        cells.set([(0, float(number))], NOON + number * 50_000)
    rows = taken(cells, 4)
    assert [row.values for row in rows] == [(0.0,), (4.0,), (8.0,), (9.0,)]
    assert statistics.dropped == 6


def test_a_longest_period_makes_a_row_without_changes() -> None:
    cells = Cells(table(Deadband(1.0), mode="monitor", max_period=0.1), Statistics())
    cells.set([(0, 5.0)], NOON)
    cells.set([(0, 5.5)], NOON + 1)
    assert [row.values for row in taken(cells, 3)] == [(5.0,)] * 3


def test_a_scan_takes_the_latest_and_counts_the_others() -> None:
    statistics = Statistics()
    cells = Cells(table(None, None), statistics)
    for number in range(4):
        cells.set([(0, float(number))], NOON)
    assert [row.values for row in taken(cells, 2)] == [(3.0, None)] * 2
    assert statistics.dropped == 3


# --- the instants at which a writer works, and its pauses after failures ---


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
