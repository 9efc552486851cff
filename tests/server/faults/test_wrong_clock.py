"""A wrong clock during one start of the server: no week leaves the log because of it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from clocks import faketime

from ringlog.schema.relations.partitions import Week
from servers import RunningServer, ringlog, serving
from waiting import wait_until

FACILITY = """
timezone = "UTC"

[[table]]
name = "clocked"
rows = 100
cycle = 1.0
retention = "3 weeks"
column = [{ name = "count", type = "int" }]

[[table]]
name = "longer"
rows = 100
cycle = 1.0
retention = "1 year"
column = [{ name = "count", type = "int" }]
"""
TABLES = ("clocked", "longer")


def put(server: RunningServer, first: datetime, count: int) -> None:
    with server.connect(server.writer.user, server.writer.password) as connection:
        cursor = connection.cursor()
        for number in range(count):
            moment = (first + timedelta(seconds=number)).replace(tzinfo=None)
            for table in TABLES:
                cursor.callproc(f"put_{table}", (None, moment.isoformat(" "), number))


def counts(server: RunningServer) -> list[object]:
    with psycopg.connect(server.dsn) as connection:
        return [
            connection.execute(f"select count(*) from log.{table}".encode()).fetchone() for table in TABLES
        ]


@pytest.mark.parametrize("ahead", ["+42d", pytest.param("+3650d", marks=pytest.mark.long)])
def test_a_clock_that_is_wrong_for_one_start_removes_nothing(
    temporary_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: str
) -> None:
    facility = tmp_path / "clocked.toml"
    facility.write_text(FACILITY)
    data = temporary_directory / f"clocked{ahead[1:]}"
    now = datetime.now(UTC)
    with serving(data, facility=facility) as server:
        put(server, Week.of(now).start - timedelta(days=6), 20)
        put(server, now - timedelta(seconds=20), 20)
    with monkeypatch.context() as wrong:
        wrong.setenv("LD_PRELOAD", faketime())
        wrong.setenv("FAKETIME", ahead)
        wrong.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        wrong.setenv("DONT_FAKE_MONOTONIC", "1")
        with serving(data, facility=facility) as server:
            (there,) = server.sql("select now()")[0]
            assert there > now + timedelta(days=41)

            def is_logged() -> bool:
                return (
                    "ringlog maintain --clock-is-right" in data.with_name(f"{data.name}.stderr").read_text()
                )

            wait_until(is_logged, lambda: data.with_name(f"{data.name}.stderr").read_text())
            assert counts(server) == [(40,), (40,)]
            status = ringlog("status", "--data", data)
            assert status.returncode == 1
            assert "days ahead of the last round of housekeeping" in status.stdout
            machine = json.loads(ringlog("status", "--json", "--data", data).stdout)
            assert [clock["node"] for clock in machine["clock"]] == [None]
    with serving(data, facility=facility) as server:
        assert counts(server) == [(40,), (40,)]
        machine = json.loads(ringlog("status", "--json", "--data", data).stdout)
        assert machine["clock"] == []
        assert ringlog("weeks", "list", "--data", data).stdout == "no weeks are set aside\n"


@pytest.mark.long
def test_weeks_removed_by_a_wrong_clock_are_restored(temporary_directory: Path, tmp_path: Path) -> None:
    """The operator has confirmed it."""
    facility = tmp_path / "clocked.toml"
    facility.write_text(FACILITY)
    data = temporary_directory / "clockback"
    now = datetime.now(UTC)
    begin = now - timedelta(weeks=6)
    with serving(data, facility=facility) as server:
        put(server, now - timedelta(seconds=20), 20)
        put(server, begin, 20)
        with psycopg.connect(server.dsn) as connection:
            for table in TABLES:
                connection.execute(
                    "select ringlog.make_week(%s, %s, %s)", [table, Week.of(begin).start, begin]
                )
        output = ringlog("maintain", "--clock-is-right", "--data", data)
        assert output.returncode == 0, output
        week = Week.of(begin).partition("clocked")
        assert f"set aside log.{week}: past retention\n" in output.stdout
        assert counts(server) == [(20,), (40,)]
        days = [f"{moment:%Y-%m-%d}" for moment in (begin, begin + timedelta(days=1))]
        refused = ringlog("weeks", "restore", "clocked", *days, "--data", data)
        assert refused.returncode == 2
        assert "past the retention of clocked (3 weeks)" in refused.stderr
        facility.write_text(FACILITY.replace("3 weeks", "9 weeks"))
        assert ringlog("init", "--facility", facility, "--data", data).returncode == 0
        assert f"clocked {Week.of(begin).start:%Y-%m-%d}" in ringlog("weeks", "list", "--data", data).stdout
        output = ringlog("weeks", "restore", "clocked", *days, "--data", data)
        assert output.stdout == f"restored log.{week}\n"
        assert counts(server) == [(40,), (40,)]
        # a shorter retention needs the operator's decision; the message names weeks and rows
        facility.write_text(FACILITY)
        refused = ringlog("facility", "diff", facility, "--data", data)
        assert refused.returncode == 1
        assert (
            f"its log is kept for 9 weeks and the facility file has 3 weeks; this drops the week"
            f" {Week.of(begin).start:%Gw%V} with about 20 rows" in refused.stdout + refused.stderr
        )
