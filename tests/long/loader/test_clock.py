"""A clock that is set back and ahead while a writer runs: each row of the source is in the log once."""

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from clocks import faketime

from ringlog.clients import Address
from servers import RINGLOG, RunningServer, serving
from waiting import PATIENCE, wait_until

FACILITY = Path(__file__).with_name("clock.toml")

# Every produced row is recorded before a writer gets it.
SOURCE = """
import os
from datetime import UTC, datetime

file = os.open("given", os.O_RDWR | os.O_CREAT | os.O_APPEND)
number = os.read(file, 1_000_000).count(b"\\n")

def read(table):
    global number
    number += 1
    os.write(file, f"{number}\\n".encode())
    return {"count": number}
"""


@pytest.fixture
def clock_server(temporary_directory: Path) -> Iterator[RunningServer]:
    with serving(temporary_directory / "clock", facility=FACILITY) as running:
        yield running


@contextmanager
def writing(server: RunningServer, folder: Path, clock: Path) -> Iterator[subprocess.Popen[str]]:
    """A writer of the source, by the time that the file `clock` has."""
    environment = os.environ | {
        "RINGLOG_PASSWORD": server.writer.password,
        "RINGLOG_SPOOL": str(folder / "spool"),
        "LD_PRELOAD": faketime(),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    address = Address(server.writer.user, server.host, server.port)
    command = [RINGLOG, "load", "--facility", FACILITY, "--url", str(address)]
    with subprocess.Popen(
        [*command, "--source", "python:jumping:read"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            # after a failure do not wait for its end
            process.kill()
            raise
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert "refused" not in output


def test_a_clock_that_jumps_loses_nothing(clock_server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "jumping.py").write_text(SOURCE)
    clock = tmp_path / "clock"

    def set_clock(seconds: float) -> None:
        # whole at any moment: the running writer reads it again and again
        other = tmp_path / "other"
        other.write_text(f"{seconds:+.3f}s\n")
        other.rename(clock)

    set_clock(0)
    begin = datetime.now(UTC)
    given = tmp_path / "given"

    def let_rows_pass(process: subprocess.Popen[str], count: int) -> None:
        count += len(given.read_text().split()) if given.exists() else 0

        def have_passed() -> bool:
            assert process.poll() is None, process.communicate()
            return given.exists() and len(given.read_text().split()) >= count

        wait_until(have_passed, lambda: "the writer waits for the clock")

    with writing(clock_server, tmp_path, clock) as process:
        let_rows_pass(process, 3)
        # by a day, by an hour, by one round of the ring, by a moment
        for jump in (3600, -3600, -86400, 4, 0, -4, 0.05, -0.05, 0):
            set_clock(jump)
            let_rows_pass(process, 5)
    on_its_way = len(given.read_text().split())
    # events that were not sent within the grace of a stop are reported at the next start
    expected = [r"set ahead by (3599\.9|3600\.[01]) s", r"set back by (7199\.[89]|7200\.[012]) s"]
    with (
        writing(clock_server, tmp_path, clock) as process,
        psycopg.connect(clock_server.dsn, autocommit=True) as connection,
    ):
        let_rows_pass(process, 1)

        def are_told() -> bool:
            assert process.poll() is None, process.communicate()
            return all(re.search(words, events(connection)) for words in expected)

        wait_until(are_told, lambda: events(connection))
        sent = len(given.read_text().split())

        # live rows come first, so the last row may be stored before those that wait in the spool
        def missing() -> set[int]:
            assert process.poll() is None, process.communicate()
            rows = connection.execute("select count::int from log.clock").fetchall()
            return set(range(1, sent + 1)).difference(*rows)

        # the row in transit at the request to end may not have left the source
        wait_until(lambda: missing() <= {on_its_way}, lambda: f"not stored: {missing()}")
    numbers = [int(line) for line in given.read_text().split()]
    with psycopg.connect(clock_server.dsn) as connection:
        stored = connection.execute("select count::int from log.clock").fetchall()
        ring = connection.execute("select max(time) from online.clock").fetchone()
    assert numbers == [*range(1, len(numbers) + 1)]
    found = Counter(number for (number,) in stored)
    assert set(found.values()) == {1}
    assert ring is not None
    assert ring[0] > begin + timedelta(minutes=59), "the ring goes back"


def events(connection: psycopg.Connection) -> str:
    """The writer's reports on its clock."""
    rows = connection.execute(
        "select message from ringlog.event where kind = 'clock' and table_name = 'clock'"
    ).fetchall()
    return " ".join(words for (words,) in rows)
