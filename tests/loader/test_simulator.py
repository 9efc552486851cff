"""The simulated machine: the same for the same seed, and like a storage ring."""

from datetime import timedelta
from itertools import islice, pairwise
from pathlib import Path

import pytest

from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Reading
from ringlog.loader.sources.signals import beam_current, signal
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Table
from ringlog.schema.facility_files.facility_file import load_facility

FACILITY = Path(__file__).with_name("facility.toml")
BEGIN = 1_700_000_000 * SECOND


def readings(column: Column, seconds: int, step: float = 1.0, seed: int = 1) -> list[Reading]:
    simulator = Simulator(seed)
    table = Table(name="t", rows=10, cycle=1.0, columns=(column,))
    signals = simulator.signals(table)
    return [
        simulator.row(table, signals, BEGIN + round(number * step * SECOND)).values[0]
        for number in range(round(seconds / step))
    ]


def numbers(column: Column, seconds: int, step: float = 1.0, seed: int = 1) -> list[float]:
    return [
        float(value) for value in readings(column, seconds, step, seed) if isinstance(value, (int, float))
    ]


def test_rows_depend_on_seed_table_and_time_alone() -> None:
    table = load_facility(FACILITY).tables[1]
    first, again, other = Simulator(1), Simulator(1), Simulator(2)
    row = first.row(table, first.signals(table), BEGIN)
    first.row(table, first.signals(table), BEGIN + 1)
    assert row == again.row(table, again.signals(table), BEGIN)
    assert row != first.row(table, first.signals(table), BEGIN + 1)
    assert row != other.row(table, other.signals(table), BEGIN)


def test_every_column_type_gets_readings_that_fit() -> None:
    table = load_facility(FACILITY).tables[2]
    simulator = Simulator()
    signals = simulator.signals(table)
    for number in range(500):
        values = simulator.row(table, signals, BEGIN + number * 60 * SECOND).values
        assert [type(value) for value in values] == [float, float, int, int, int, bool, str]
        assert -(2**15) <= int(values[3] or 0) < 2**15
        assert 1 <= len(str(values[6])) <= 12


def test_named_states_are_taken() -> None:
    column = Column("c", "t/c", "smallint", states=((3, "closed"), (5, "open"), (9, "moving")))
    taken = readings(column, 100 * 300, 300.0)
    assert {*taken} == {3, 5, 9}
    assert taken.count(3) > 80


@pytest.mark.parametrize("length", [1, 2, 5, 40])
def test_states_fit_their_column(length: int) -> None:
    states = readings(Column("c", "t/c", f"varchar({length})"), 86_400, 300)
    assert len({*states}) >= (1 if length == 1 else 2)
    assert all(isinstance(state, str) and 1 <= len(state) <= length for state in states)


@pytest.mark.parametrize("unit", ["A", "mA", "Pa", "degC", "kV", ""])
@pytest.mark.parametrize("kind", ["real", "double", "int", "smallint", "bigint"])
def test_limits_are_kept(kind: str, unit: str) -> None:
    values = numbers(Column("c", "t/c", kind, unit=unit, limits=(3.0, 5.0)), 3600, 7.0)
    assert all(3.0 <= value <= 5.0 for value in values)


def test_the_beam_decays_and_is_topped_up() -> None:
    current = [beam_current(seconds / 10) for seconds in range(17_000_000_000, 17_000_000_600)]
    rises = [later - earlier for earlier, later in pairwise(current) if later > earlier]
    assert len(rises) == 2
    assert all(0 < rise < 0.2 for rise in rises)
    assert all(99.8 < value <= 100.0 for value in current)


def test_magnets_stay_at_their_set_points_with_noise() -> None:
    for number in range(20):
        values = numbers(
            Column("c", f"mag_{number}/current", "real", unit="A", limits=(0.0, 500.0)), 3600, 10.0
        )
        assert max(values) - min(values) < 0.005 * 500
        assert len({*values}) > 300
    assert (
        len({round(numbers(Column("c", f"mag_{number}/current", "real", "A"), 1)[0]) for number in range(20)})
        > 5
    )


def test_vacuum_follows_the_injections() -> None:
    values = numbers(Column("c", "vac_1/pressure", "double", unit="Pa"), 600)
    injected = [value for number, value in enumerate(values) if (1_700_000_000 + number) % 20 < 1]
    quiet = [value for number, value in enumerate(values) if (1_700_000_000 + number) % 20 > 12]
    assert min(injected) > max(quiet) * 1.02
    assert 1e-10 < min(values) < max(values) < 1e-5


def test_temperatures_follow_the_time_of_day() -> None:
    values = numbers(Column("c", "tunnel/t", "real", unit="degC"), 86_400, 600)
    assert 0.5 < max(values) - min(values) < 3.0


def test_status_bits_are_mostly_good() -> None:
    for name, good in (("ready", True), ("fault", False)):
        values = readings(Column("c", f"x/{name}", "bit"), 30 * 86_400, 300)
        assert 0.95 < values.count(good) / len(values) < 1.0


def test_rows_are_made_at_the_instants_of_the_cycle() -> None:
    table = load_facility(FACILITY).tables[0]
    signals = signal(1, table.columns[0])
    waited: list[float] = []
    rows = list(islice(Simulator(speed=10.0).rows(table, None, waited.append, Statistics()), 50))
    times = [row.time for row in rows]
    # a cycle of 0.1 s, ten times as fast; instants passed while nobody waited are left out
    assert all(0 < seconds <= 0.02 for seconds in waited)
    assert all(
        (later - earlier) % timedelta(milliseconds=10) == timedelta() for earlier, later in pairwise(times)
    )
    assert callable(signals)
