"""A Python function as a source, in a writer as `ringlog load` starts it."""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ringlog.loader.schedule import SECOND
from ringlog.loader.sources import Reading
from ringlog.loader.sources.lines import LineReader
from ringlog.loader.sources.signals import beam_current, signal
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Column, Table
from ringlog.schema.facility_files.facility_file import load_facility
from servers import RunningServer, free_port
from waiting import wait_until

Stored = Callable[[str], list[tuple[Any, ...]]]

SOURCE = """
import time
from itertools import pairwise
from datetime import UTC, datetime, timedelta

calls = 0

def read(table):
    global calls
    calls += 1
    if calls == 3:
        raise OSError("the crate does not answer")
    if calls == 5:
        return None
    return {"current": calls / 4, "sr_beam/current": calls / 4}

def rows(table):
    begin = datetime(2019, 3, 1, tzinfo=UTC)
    for number in range(50):
        reading = {"an_int": number, "a_bit": number % 2, "every_type/real": 0.5}
        if number == 20:
            reading["an_int"] = 2.5
        yield begin + timedelta(microseconds=number), reading

def naive(table):
    yield datetime(2019, 3, 1), {}

def unknown(table):
    yield datetime.now(UTC), {"colour": 1}

constant = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_daq.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return "python:own_daq"


def test_a_function_is_called_once_a_cycle(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored, module: str
) -> None:
    begin = datetime.now(UTC)
    one = load("--tables", "beam", "--source", f"{module}:read")
    wait_until(lambda: len([row for row in stored("beam") if row[1] > begin]) >= 8)
    rows = [row for row in stored("beam") if row[1] > begin]
    code, output = one.stop()
    assert code == 0, output
    assert [row[2] for row in rows[:6]] == [0.25, 0.5, 1.0, 1.5, 1.75, 2.0]
    distances = [round((b[1] - a[1]).total_seconds(), 3) for a, b in pairwise(rows[:5])]
    # a busy machine has no time for some of the instants
    least = [0.1, 0.2, 0.2, 0.1]
    assert all(round(found % 0.1, 3) in (0.0, 0.1) for found in distances), distances
    assert all(found >= expected for found, expected in zip(distances, least, strict=True)), distances
    events = quick_server.sql(
        "select message from ringlog.event where kind = 'unread' and time > %s", [begin]
    )
    assert events == [("python:own_daq:read: OSError: the crate does not answer",)]


def test_events_are_reported_at_the_end_to_a_slow_server(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored, module: str
) -> None:
    begin = datetime.now(UTC)
    with psycopg.connect(quick_server.dsn, autocommit=True) as connection:
        connection.execute(
            "create function ringlog.slow() returns trigger language plpgsql"
            " as 'begin perform pg_sleep(3); return new; end'"
        )
        connection.execute(
            "create trigger slow before insert on ringlog.event for each row when (new.kind = 'unread')"
            " execute function ringlog.slow()"
        )
        try:
            one = load("--tables", "beam", "--source", f"{module}:read")
            wait_until(lambda: len([row for row in stored("beam") if row[1] > begin]) >= 4)
            code, output = one.stop()
            found = connection.execute(
                "select message from ringlog.event where kind = 'unread' and time > %s", [begin]
            ).fetchall()
        finally:
            connection.execute("drop function ringlog.slow cascade")
    assert code == 0, output
    assert found == [("python:own_daq:read: OSError: the crate does not answer",)]


def test_a_generator_returns_rows_with_their_own_times(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored, module: str
) -> None:
    code, output = load("--tables", "every_type", "--source", f"{module}:rows").end()
    assert code == 0, output
    rows = [row for row in stored("every_type") if row[1].year == 2019 and row[1].month == 3]
    assert [row[1].microsecond for row in rows] == [*range(50)]
    assert [row[4] for row in rows] == [None if number == 20 else number for number in range(50)]
    assert {row[2] for row in rows} == {0.5}
    assert rows[1][7] is True
    unfit = quick_server.sql("select message from ringlog.event where kind = 'unfit' and time < '2019-04-01'")
    assert unfit == [("an_int: 2.5 is not a whole number, the column is int",)]


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        ("naive", "gave the time datetime.datetime(2019, 3, 1, 0, 0): it must be a datetime with its zone"),
        ("unknown", "gave a reading of 'colour', which is neither a column nor a signal"),
        ("missing", "has no attribute 'missing'"),
        ("constant", "is not callable"),
    ],
)
def test_sources_without_rows_are_named(
    load: Callable[..., Any], module: str, function: str, complaint: str
) -> None:
    code, output = load("--tables", "beam", "--source", f"{module}:{function}").end()
    assert code == 1
    assert complaint in output


# --- lines on a socket become rows ---

FACILITY = Path(__file__).with_name("facility.toml")


def test_lines_are_read_exactly_or_refused_with_the_reason() -> None:
    (table,) = (table for table in load_facility(FACILITY).tables if table.name == "every_type")
    reader = LineReader(table)
    assert reader.read(b"every_type/real 1.5 1780000000.000001\n") == (0, 1.5, 1_780_000_000_000_001)
    assert reader.read(b"an_int -7 2026-05-28T20:26:40+00:00\n") == (2, -7, 1_780_000_000_000_000)
    before = time.time_ns() // 1000
    seq_no, reading, stamp = reader.read(b"a_bit -\n")
    assert (seq_no, reading) == (5, None)
    assert before <= stamp <= time.time_ns() // 1000
    for line, complaint in (
        (b"nothing 1\n", "table every_type has no column or signal 'nothing'"),
        (b"an_int 1.5\n", "an_int: '1.5' is not a int"),
        (b"an_int\n", "a line must have the form: name value time"),
        (b"an_int 1", "a line must have the form: name value time"),
        (b"an_int 1 yesterday\n", "'yesterday' is neither seconds since 1970 nor an ISO 8601 time"),
        (b"an_int 1 2026-05-28T20:26:40\n", "time 2026-05-28T20:26:40 has no offset"),
        (b"an_int 1 -5\n", "time -5 is out of range"),
        (b"\xff\xfe 1\n", "the line is not UTF-8 text"),
    ):
        with pytest.raises(ValueError, match="^" + complaint.replace("+", "\\+")):
            reader.read(line)


@pytest.mark.long
def test_lines_are_logged(
    load: Callable[..., Any], stored: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    monitored = tmp_path / "monitored.toml"
    monitored.write_text(FACILITY.read_text().replace("cycle = 0.1\n", 'cycle = 0.1\nsample = "monitor"\n'))
    before = len(stored("beam"))
    port = free_port()
    options = ("--facility", monitored, "--tables", "beam", "--source", f"lines:127.0.0.1:{port}")
    one = load(*options)

    def connection_to_it() -> socket.socket | None:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port))
        return None

    connection = wait_until(connection_to_it)
    assert connection is not None
    begin = int(time.time())
    with connection:
        for number in range(20):
            connection.sendall(f"sr_beam/current {number}.5 {begin + number / 10}\n".encode())
        connection.sendall(b"current much\n")
        assert connection.recv(100) == b"current: 'much' is not a number (no reading is an empty cell)\n"

        def are_stored() -> bool:
            assert one.process.poll() is None
            return len(stored("beam")) >= before + 20

        wait_until(are_stored)
    assert one.stop()[0] == 0
    rows = [(row[1], row[2]) for row in stored("beam")[before:]]
    assert rows == [(datetime.fromtimestamp(begin + number / 10, UTC), number + 0.5) for number in range(20)]


# --- the simulated machine: the same for the same seed, and like a storage ring ---

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
    times = [row.time for (row,) in rows]
    # a cycle of 0.1 s, ten times as fast; instants passed while nobody waited are left out
    assert all(0 < seconds <= 0.02 for seconds in waited)
    assert all((later - earlier) % 10_000 == 0 for earlier, later in pairwise(times))
    assert callable(signals)
