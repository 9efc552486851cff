"""A server for readers with HTTP, and a log with known rows: fixtures for several folders."""

import base64
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
from known_rows import HELD, ROWS, WAVEFORMS, row, time_of

from servers import FACILITY, Login, RunningServer, free_port, ringlog, serving

OPEN = Login("display", "show-Ω-3")


@dataclass(frozen=True)
class Web:
    """The address of HTTP, and the logins."""

    server: RunningServer
    url: str
    counts: str
    """HOST:PORT for Prometheus"""

    def client(self, login: Login | None = None) -> httpx.Client:
        headers = {}
        if login is not None:
            shown = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
            headers["Authorization"] = f"Basic {shown}"
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)


# in addition to the tables of tests/harness/facility.toml: alarms by EPICS's names of fields, nanoseconds, a
# waveform, and parameters
BPM = Path(__file__).with_name("webs.toml").read_text()


@pytest.fixture(scope="session")
def web(temporary_directory: Path) -> Iterator[Web]:
    """`ringlog serve --http`, open to the role `display`, with the logins writer, reader and display."""
    folder = Path(tempfile.mkdtemp(dir=temporary_directory))
    folder.chmod(0o755)
    facility = folder / "web.toml"
    facility.write_text(FACILITY.read_text() + BPM)
    port, counts = free_port(), f"127.0.0.1:{free_port()}"
    options = ("--http", f"127.0.0.1:{port}", "--http-role", OPEN.user, "--metrics", counts)
    with serving(folder / "web", *options, facility=facility) as running:
        words = ("user", "add", OPEN.user, "--reader", "--password-stdin", "--data", running.data)
        added = ringlog(*words, stdin=OPEN.password)
        assert added.returncode == 0, added.stderr
        fill(running)
        yield Web(running, f"http://127.0.0.1:{port}", counts)


def fill(running: RunningServer) -> None:
    names = list(row(0))
    with psycopg.connect(running.dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"insert into log.every_type (seq_no, time, {', '.join(names)})"
            f" values (%s, %s, {', '.join(['%s'] * len(names))})",
            [[number % 10 + 1, time_of(number), *row(number).values()] for number in range(ROWS)],
        )
        # as late rows: the server may have summarised this time already, without them
        cursor.execute("insert into ringlog.summary_mark select 'every_type', time from log.every_type")
        connection.execute(
            "update online.every_type as ring"
            " set time = log.time, a_real = log.a_real, a_varchar = log.a_varchar"
            " from log.every_type as log where log.seq_no = ring.seq_no and log.time >= %s",
            [time_of(ROWS - 10)],
        )


@pytest.fixture
def anyone(web: Web) -> Iterator[httpx.Client]:
    """A client without a login."""
    with web.client() as client:
        yield client


@pytest.fixture
def waveforms(web: Web) -> None:
    """Three rows with a waveform, of which the second is empty."""
    with psycopg.connect(web.server.dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into log.bpm (seq_no, time, turns) values (%s, %s, %s) on conflict do nothing",
            [
                (1, WAVEFORMS, [0.5, -2.5, 4.0]),
                (2, WAVEFORMS + timedelta(seconds=1, microseconds=7), []),
                (3, WAVEFORMS + timedelta(seconds=2), [float(number % 7) for number in range(100)]),
            ],
        )


@pytest.fixture
def held(web: Web) -> None:
    """Rows with a held value."""
    with psycopg.connect(web.server.dsn) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "insert into log.bpm (seq_no, time, x_set) values (%s, %s, %s) on conflict do nothing",
            [(4 + number, *each) for number, each in enumerate(HELD)],
        )
