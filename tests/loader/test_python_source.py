"""A Python function as a source, in a writer as `ringlog load` starts it."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from servers import RunningServer
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
    code, said = one.stop()
    assert code == 0, said
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
            code, said = one.stop()
            found = connection.execute(
                "select message from ringlog.event where kind = 'unread' and time > %s", [begin]
            ).fetchall()
        finally:
            connection.execute("drop function ringlog.slow cascade")
    assert code == 0, said
    assert found == [("python:own_daq:read: OSError: the crate does not answer",)]


def test_a_generator_returns_rows_with_their_own_times(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored, module: str
) -> None:
    code, said = load("--tables", "every_type", "--source", f"{module}:rows").end()
    assert code == 0, said
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
    code, said = load("--tables", "beam", "--source", f"{module}:{function}").end()
    assert code == 1
    assert complaint in said
