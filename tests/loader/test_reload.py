"""Running writers get a changed facility file; changes that need more are named."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ringlog.loader.control.control_socket import ControlSocket, ring
from ringlog.loader.control.policy_channel import Policy, PolicyChannel
from ringlog.loader.control.reload import Reloaded
from ringlog.loader.sampling import Cells, Filter
from ringlog.loader.sources import Changed, Row
from ringlog.loader.statistics import Statistics
from ringlog.schema.facility import Table
from ringlog.schema.facility_files.facility_file import load_facility
from servers import ringlog
from waiting import wait_until

FACILITY = Path(__file__).with_name("facility.toml")
Stored = Callable[[str], list[tuple[Any, ...]]]


def reload(spool: Path) -> tuple[int, str]:
    done = ringlog("reload", "--spool", spool)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    copy = tmp_path / "facility.toml"
    copy.write_text(FACILITY.read_text())
    return copy


def cycles(rows: list[tuple[Any, ...]]) -> list[float]:
    return [round((later[1] - earlier[1]).total_seconds(), 3) for earlier, later in pairwise(rows)]


def wait_for(stored: Stored, table: str, count: int) -> None:
    wait_until(lambda: len(stored(table)) >= count)


def test_a_new_cycle_reaches_running_writers(
    load: Callable[..., Any], stored: Stored, file: Path, spool: Path
) -> None:
    def newest(table: str, since: int, cycle: float) -> bool:
        """Whether the newest of the later rows are a cycle apart: a busy machine misses some."""
        apart = cycles(stored(table)[since:])[-3:]
        return len(apart) == 3 and cycle in apart and min(apart) >= cycle

    before = len(stored("beam"))
    one = load("--facility", file, "--tables", "beam,magnet")
    wait_until(lambda: newest("beam", before, 0.1))
    text = file.read_text()
    file.write_text(text.replace("cycle = 0.1\n", "cycle = 0.5\n"))
    code, output = reload(spool)
    assert (code, output) == (
        0, f"ringlog load, process {one.process.pid}: beam: cycle 0.5 s instead of 0.1 s\n",
    )  # fmt: skip
    assert reload(spool)[1].endswith(": nothing has changed\n")
    changed = len(stored("beam"))
    wait_until(lambda: newest("beam", changed, 0.5))
    # back again, by a signal this time
    file.write_text(text)
    one.process.send_signal(signal.SIGHUP)
    back, others = len(stored("beam")), len(stored("magnet"))
    wait_until(lambda: newest("beam", back, 0.1))
    # other writers continue as before
    wait_until(lambda: newest("magnet", others, 0.2))
    code, output = one.stop()
    assert code == 0, output
    assert "beam: cycle 0.1 s instead of 0.5 s" in output
    assert "restarted" not in output
    # no row is omitted between the two cycles; those missed on a busy machine are reported
    assert all(distance <= 0.6 for distance in cycles(stored("beam")[before:])) or " missed" in output


@pytest.mark.long
def test_changes_that_need_more_than_a_reload_are_named(
    load: Callable[..., Any], file: Path, spool: Path
) -> None:
    one = load("--facility", file, "--tables", "beam,magnet")
    wait_until(lambda: [*spool.glob("load-*.socket")])
    text = file.read_text()
    install = f"run ringlog init --facility {file}, then start ringlog load again"
    file.write_text(
        text.replace("count = 60", "count = 61").replace('unit = "mA"', 'unit = "A"')
        + '[[table]]\nname = "new"\nrows = 5\ncycle = 1\n[[table.column]]\nname = "c"\ntype = "real"\n'
    )
    code, output = reload(spool)
    assert code == 1
    lines = [line.partition(": ")[2] for line in output.splitlines()]
    assert lines == [
        "beam: settings that are stored in the database have changed, too: run ringlog init "
        f"--facility {file}",
        f"new: a new table: {install}",
        f"magnet: other columns, signals, rows or collect: {install}",
    ]
    file.write_text(text.replace("rows = 40", "rows = many"))
    code, output = reload(spool)
    assert code == 1
    assert "is not TOML" in output
    assert output.endswith("nothing is changed\n")
    assert one.stop()[0] == 0
    assert [*spool.glob("load-*.socket")] == []
    code, output = reload(spool)
    assert code == 1
    assert f"no ringlog load with spools in {spool} is running" in output


@pytest.mark.long
def test_a_restarted_writer_keeps_the_new_policy(
    load: Callable[..., Any], stored: Stored, file: Path, spool: Path
) -> None:
    import psutil

    before = len(stored("beam"))
    one = load("--facility", file, "--tables", "beam")
    wait_for(stored, "beam", before + 3)
    file.write_text(file.read_text().replace("cycle = 0.1\n", "cycle = 0.4\n"))
    assert reload(spool)[0] == 0
    for child in psutil.Process(one.process.pid).children():
        child.kill()
    again = len(stored("beam")) + 2
    wait_for(stored, "beam", again + 3)
    assert one.stop()[0] == 0
    # a busy machine misses a cycle, or several
    assert all(round(distance / 0.4, 2).is_integer() for distance in cycles(stored("beam"))[-2:])


def test_a_process_that_is_about_to_listen_is_not_taken_for_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(socket.socket):
        def listen(self, *backlog: int) -> None:
            assert [*ring(tmp_path)] == []
            super().listen(*backlog)

    monkeypatch.setattr(socket, "socket", Slow)
    done = Reloaded(True, ("nothing has changed",))
    answers: list[tuple[int, Reloaded]] = []
    asks = threading.Thread(target=lambda: answers.extend(ring(tmp_path)))
    with ControlSocket(tmp_path) as control:
        asks.start()
        wait_until(lambda: control.answer(lambda: done) or not asks.is_alive())
    asks.join()
    assert answers == [(os.getpid(), done)]
    assert [*tmp_path.iterdir()] == []


def table(sample: str, deadband: float, folder: Path) -> Table:
    file = folder / "f.toml"
    file.write_text(
        f'[[table]]\nname = "t"\nrows = 5\ncycle = 0.05\nsample = {sample}\n'
        f'[[table.column]]\nname = "c"\ntype = "real"\ndeadband = {deadband}\n'
    )
    return load_facility(file).tables[0]


def test_deadbands_and_modes_change_between_two_rows(tmp_path: Path) -> None:
    filtered = Filter(table('"scan"', 5.0, tmp_path))
    assert [filtered.takes(Row.of(0, (value,))) for value in (1.0, 3.0)] == [True, False]
    filtered.adopt(table('"scan"', 0.5, tmp_path))
    assert filtered.takes(Row.of(0, (3.0,)))

    policies = PolicyChannel()
    cells = Cells(table('"monitor"', 0.0, tmp_path), Statistics())
    scanned = table('"scan"', 0.0, tmp_path)
    given = iter([scanned])

    def wait(_seconds: float) -> None:
        time.sleep(0.001)
        for changed in given:
            raise Changed(changed)

    cells.set([(0, 7.0)], 1_000_000)
    # a waiting update is in the first scanned row
    assert next(cells.rows(wait))[0].values == (7.0,)
    # the latest of several policies applies
    assert policies.take() is None
    policies.give(Policy.of(table('"monitor"', 1.0, tmp_path)))
    policies.give(Policy.of(scanned))
    taken = policies.take()
    assert taken == Policy.of(scanned)
    assert taken.applied(table('"monitor"', 1.0, tmp_path)) == scanned
    # a writer that does not accept it does not block the supervisor
    with suppress(AssertionError):
        for _ in range(100_000):
            assert policies.give(Policy.of(scanned))
        pytest.fail("the supervisor can give without end")
