"""The metrics of writers, read as by Prometheus."""

import io
import math
import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scraping import read

from ringlog.clients.figures import State
from ringlog.loader.control.notify import notify
from ringlog.loader.display import Board
from ringlog.loader.metrics import Metrics
from ringlog.loader.statistics import Latencies, Statistics, shared
from ringlog.schema.facility import Column, Table
from ringlog.schema.facility_files.facility_file import load_facility
from servers import free_port
from waiting import PATIENCE, wait_until


def test_one_endpoint_serves_all_writers(
    load: Callable[..., Any], stored: Callable[[str], list[Any]]
) -> None:
    port = free_port()
    before = len(stored("beam")), len(stored("magnet"))
    one = load("--tables", "beam,magnet", "--metrics", f"127.0.0.1:{port}")

    def wrote() -> bool:
        assert one.process.poll() is None, one.end()
        new = [len(stored(table)) - rows for table, rows in zip(("beam", "magnet"), before, strict=True)]
        return new[0] > new[1] >= 5

    counts: dict[str, dict[str, float]] = {}

    def agree() -> bool:
        """Whether the counts are consistent, and of five rows: a row is stored before it is counted."""
        counts.update(read(port))
        rows = counts["ringlog_writer_acknowledged_rows_total"]
        commits, batches = counts["ringlog_writer_commits_total"], counts["ringlog_writer_batches_total"]
        # one transaction a row, unless a writer was late and sent some in one; 60 reals and one double
        return (
            commits == counts["ringlog_writer_call_seconds_count"]
            and min(rows.values(), default=0) >= 5
            and all(rows[table] - commits[table] >= batches[table] for table in rows)
            and all(rows[table] == commits[table] for table in rows if not batches[table])
            and counts["ringlog_writer_bytes_total"]
            == {"magnet": 240 * rows["magnet"], "beam": 8 * rows["beam"]}
            and counts["ringlog_writer_spooled_rows"]["beam"] <= 2
            and counts["ringlog_writer_oldest_spooled_seconds"]["beam"] < 5
        )

    wait_until(wrote)
    wait_until(agree, lambda: counts)
    code, output = one.stop()
    assert code == 0, output
    written = len(stored("magnet")) - before[1]
    rows = counts["ringlog_writer_acknowledged_rows_total"]
    assert rows["magnet"] <= written
    assert 0 < counts["ringlog_writer_call_seconds_sum"]["beam"] < 10 * rows["beam"]
    assert counts["ringlog_writer_running"] == {"beam": 1, "magnet": 1}
    assert counts["ringlog_writer_reconnects_total"] == {"beam": 0, "magnet": 0}
    assert counts["ringlog_writer_cpu_seconds_total"]["beam"] > 0


def test_latencies_are_counted_by_octaves_and_ages_from_the_oldest_row() -> None:
    (one,) = shared(1)
    for latency in (0.00005, 0.001, 0.001, 0.5, 100.0):
        one.answered(latency)
    one.oldest = time.time_ns() // 1000 - 90_000_000
    one.spooled = 3
    found = {family.name: family for family in Metrics({"beam": one}).collect()}
    (age,) = found["ringlog_writer_oldest_spooled_seconds"].samples
    assert 90 <= age.value < 90 + PATIENCE
    histogram = found["ringlog_writer_call_seconds"].samples
    buckets = {float(each.labels["le"]): each.value for each in histogram if "le" in each.labels}
    assert [*buckets] == sorted(buckets)
    assert buckets[0.00016] == 1
    assert buckets[0.00128] == 3
    assert buckets[10.48576] == 4
    assert buckets[float("inf")] == 5
    (total,) = (each.value for each in histogram if each.name.endswith("_sum"))
    assert abs(total - 100.50205) < 1e-6


def test_an_address_in_use_is_named(load: Callable[..., Any], quick_server: Any) -> None:
    taken = f"{quick_server.host}:{quick_server.port}"
    code, output = load("--tables", "beam", "--metrics", taken).end()
    assert code == 1
    assert f"ringlog: --metrics: cannot listen on {taken}: " in output


# --- notifications of `ringlog load` to systemd ---


@pytest.mark.long
def test_systemd_is_notified_of_ready_alive_and_stopping(
    load: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        one = load("--tables", "magnet")
        assert systemd.recv(1000) == b"READY=1"
        for _ in range(2):
            assert systemd.recv(1000).startswith(b"WATCHDOG=1\nSTATUS=1 of 1 writers running")
        assert one.stop()[0] == 0
        heard = systemd.recv(1000)
        while heard.startswith(b"WATCHDOG=1"):
            heard = systemd.recv(1000)
        assert heard == b"STOPPING=1"


@pytest.mark.long
def test_without_systemd_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")


# --- the display of running writers ---

FACILITY = Path(__file__).with_name("facility.toml")


def shown(board: Board, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(board.grid(board.rates(), height))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_table_shows_each_writer_in_eighty_columns() -> None:
    tables = load_facility(FACILITY).tables[:3]
    statistics = {table.name: Statistics(state=State.RUNNING) for table in tables}
    board = Board(tables, statistics)
    board.rates()
    statistics["beam"].seq_no = 17
    statistics["beam"].answered(0.00123)
    statistics["magnet"].refused = 2
    statistics["magnet"].message = "error 8152: value too long for type character varying(12)"
    lines = shown(board, 80, 24)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("3 of 3 writers running")
    # those with problems come first
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["magnet", "running"],
        ["beam", "running"],
        ["every_type", "running"],
    ]
    assert "2 refused, error 8152" in lines[-3]
    assert "17/40" in lines[-2]
    assert "1.23 ms" in lines[-2]


def test_the_rate_of_the_data_is_that_of_the_stored_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringlog.loader.display.time.monotonic", iter([0.0, 10.0, 20.0]).__next__)
    wave = Table("wave", 10, 1.0, (Column("c", "t/c", "real[]", points=1000),))
    statistics = {"wave": Statistics(state=State.RUNNING)}
    board = Board([wave], statistics)
    board.rates()
    statistics["wave"].acknowledged, statistics["wave"].bytes = 20, 80_000
    assert "2.0 rows/s, 8.0 kB/s" in board.summary(board.rates())


def test_many_writers_stay_within_the_terminal() -> None:
    column = Column("c", "t/c", "real")
    tables = [Table(f"table_{number:02}", rows=10, cycle=1.0, columns=(column,)) for number in range(60)]
    statistics = {table.name: Statistics(state=State.RUNNING) for table in tables}
    statistics["table_59"].state = State.RECONNECTING
    lines = shown(Board(tables, statistics), 100, 24)
    assert len(lines) <= 24
    assert any(line.startswith("table_59") for line in lines)
    assert lines[-1] == "and 42 more"


# --- figures shared by processes, and latencies taken from them ---


def test_a_forked_process_counts_for_its_parent() -> None:
    statistics = shared(3)
    child = os.fork()
    if child == 0:
        statistics[1].sent = 5
        statistics[1].message = "no route to Ω" + "x" * 1000
        statistics[1].answered(0.25)
        os._exit(0)
    os.waitpid(child, 0)
    assert [one.sent for one in statistics] == [0, 5, 0]
    assert statistics[1].message.startswith("no route to Ω")
    assert statistics[1].acknowledged == 1
    assert statistics[1].last_latency == statistics[1].longest_latency == 0.25


def test_a_message_is_cut_between_characters() -> None:
    statistics = Statistics()
    statistics.message = "Ω" * 1000
    assert set(statistics.message) == {"Ω"}


@pytest.mark.parametrize("part", [0.01, 0.5, 0.9, 0.99, 0.999, 1.0])
def test_quantiles_of_several_processes_are_within_five_percent(part: float) -> None:
    dice = random.Random(7)
    statistics = [Statistics() for _ in range(4)]
    latencies = [dice.lognormvariate(math.log(0.002), 1.5) for _ in range(4000)]
    for number, latency in enumerate(latencies):
        statistics[number % 4].answered(latency)
    exact = sorted(latencies)[max(0, math.ceil(part * len(latencies)) - 1)]
    found = Latencies(statistics)
    assert exact <= found.quantile(part) <= exact * 1.05
    assert found.longest == max(latencies)


def test_latencies_outside_the_classes_are_counted() -> None:
    statistics = Statistics()
    statistics.answered(1e-7)
    statistics.answered(10_000.0)
    found = Latencies([statistics])
    assert found.quantile(0.5) < 1.1e-5
    assert found.longest == 10_000.0


def test_no_calls_have_no_latency() -> None:
    assert math.isnan(Latencies([Statistics()]).quantile(0.5))
