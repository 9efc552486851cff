"""The writer in C, clients/ctlib: every row it produced is in the log once, despite failures of its
server.
"""

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
import pytest
from psycopg import sql

from proxy import Proxy
from servers import Login, RunningServer, free_port, run, serving
from waiting import PATIENCE, wait_until

CTLIB = Path(__file__).parent.parent.parent / "clients" / "ctlib"
FACILITY = Path(__file__).with_name("ctlib.toml")
COLUMNS = tuple(f"current_{number}" for number in range(1, 201))
VERSIONS = {"at_50": "5.0", "at_74": "7.4"}
"""The tables, and the version of TDS that each is written with."""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The writer, built by its own Makefile."""
    folder = tmp_path_factory.mktemp("ctlib")
    made = run("make", "--directory", CTLIB, f"BUILD={folder}")
    assert made.returncode == 0, made.stderr
    return folder / "writer"


@dataclass
class Served:
    """A server that can be killed and restarted at the same address."""

    data: Path
    port: int
    server: RunningServer
    stack: ExitStack

    def start(self) -> None:
        listen = ("--listen", f"127.0.0.1:{self.port}")
        self.server = self.stack.enter_context(serving(self.data, *listen, facility=None))

    def kill(self) -> None:
        """kill -9 of `ringlog serve`, which includes the gateway."""
        self.server.process.kill()
        self.server.process.wait()

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """seq_no, time and values of every row of the log, in the order of their times."""
        query = sql.SQL("select * from {} order by time").format(sql.Identifier("log", table))
        with psycopg.connect(self.server.dsn) as admin:
            # the text of a real is rounded
            return admin.execute(query, binary=True).fetchall()

    def empty(self) -> None:
        with psycopg.connect(self.server.dsn) as admin:
            for table in (*VERSIONS, "small"):
                ring, log = (sql.Identifier(schema, table) for schema in ("online", "weeks"))
                admin.execute(sql.SQL("truncate {}; update {} set time = null").format(log, ring))


@pytest.fixture(scope="module")
def started(temporary_directory: Path) -> Iterator[Served]:
    data, port = temporary_directory / "ctlib", free_port()
    with ExitStack() as stack:
        server = stack.enter_context(serving(data, "--listen", f"127.0.0.1:{port}", facility=FACILITY))
        yield Served(data, port, server, stack)


@pytest.fixture
def served(started: Served) -> Served:
    """The server, with empty tables."""
    started.empty()
    return started


@dataclass
class Writer:
    process: subprocess.Popen[bytes]
    table: str
    output: Path
    """Where its counts go: a pipe that nobody reads would stop it when it is full."""
    errors: Path

    def counts(self) -> dict[str, Any]:
        """Its latest line of counts; empty before the first."""
        written, _, _ = self.output.read_text().rpartition("\n")
        counts: dict[str, Any] = json.loads(written.splitlines()[-1]) if written else {}
        return counts

    def wait_for(self, stored: int) -> None:
        """Waits until it has stored this many rows."""
        wait_until(lambda: self.counts().get("stored", 0) >= stored, self.errors.read_text)

    def end(self) -> dict[str, Any]:
        """Stops it, unless it has ended; its last counts."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, self.errors.read_text()
        return self.counts()


@contextmanager
def writers(program: Path, port: int, login: Login, folder: Path, *options: str) -> Iterator[list[Writer]]:
    """A writer for each version of TDS, each into its own table."""
    password = folder / "password"
    password.touch(0o600)
    password.write_text(f"{login.password}\n")
    running = []
    with ExitStack() as stack:
        for table, version in VERSIONS.items():
            output, errors = (folder / f"{table}.{stream}" for stream in ("stdout", "stderr"))
            command = (program, "-v", version, "-P", password, "-i", "0.1", *options, f"127.0.0.1:{port}")
            process = stack.enter_context(
                subprocess.Popen(
                    [str(word) for word in (*command, login.user, table, 4000, *COLUMNS)],
                    stdin=subprocess.DEVNULL,
                    stdout=stack.enter_context(output.open("w")),
                    stderr=stack.enter_context(errors.open("w")),
                )
            )
            stack.callback(process.kill)
            running.append(Writer(process, table, output, errors))
        yield running


def check(served: Served, table: str, counts: dict[str, Any]) -> None:
    """Each row that was produced is in the log once, with its values; nothing else is."""
    rows = served.rows(table)
    assert counts["produced"] == counts["stored"] == len(rows)
    assert counts["refused"] == counts["waiting"] == 0
    # the ring has room for all of them, so each has a seq_no of its own
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    for seq_no, _, *values in rows:
        assert values == [column + seq_no / 4096 for column in range(len(COLUMNS))]


def test_kill_9_of_the_gateway(program: Path, served: Served, tmp_path: Path) -> None:
    with writers(program, served.port, served.server.writer, tmp_path, "-c", "0.01") as running:
        for one in running:
            one.wait_for(30)
        served.kill()
        sleep(0.5)
        served.start()
        for one in running:
            one.wait_for(100)
            counts = one.end()
            assert counts["logins"] >= 2
            assert counts["repeated"] >= 1
            # the rows that the process could not read while it waited
            assert counts["missed"] > 10
            check(served, one.table, counts)


@pytest.mark.long
def test_cut_connections(program: Path, served: Served, tmp_path: Path) -> None:
    proxy = Proxy(served.port)
    words = ("-c", "0", "-n", "1500")
    cuts = 0
    with writers(program, proxy.port, served.server.writer, tmp_path, *words) as running:
        while any(one.process.poll() is None for one in running):
            # longer and longer, so that also a slow machine has time for rows between them
            sleep(random.uniform(0.02, 0.3) * (1 + cuts / 50))
            proxy.cut()
            cuts += 1
        for one in running:
            counts = one.end()
            assert counts["produced"] == 1500
            assert counts["logins"] > 3
            assert counts["repeated"] >= counts["logins"] - 2
            check(served, one.table, counts)


def test_a_server_that_does_not_answer(program: Path, served: Served, tmp_path: Path) -> None:
    with writers(program, served.port, served.server.writer, tmp_path, "-c", "0.05", "-t", "1") as running:
        for one in running:
            one.wait_for(5)
        served.server.process.send_signal(signal.SIGSTOP)
        for one in running:
            # it has waited long enough
            wait_until(one.errors.read_text)
        served.server.process.send_signal(signal.SIGCONT)
        for one in running:
            one.wait_for(20)
            counts = one.end()
            assert counts["logins"] >= 2
            check(served, one.table, counts)


def put(
    program: Path, served: Served, *arguments: str, count: int = 1, login: Login | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a writer of this many rows to its end; the arguments are those after the user."""
    one = login or served.server.writer
    options = ("-c", "0", "-n", str(count))
    words = (*options, f"127.0.0.1:{served.port}", one.user, *arguments)
    return run(program, *words, stdin=f"{one.password}\n")


def test_it_goes_on_where_the_ring_ends(program: Path, served: Served) -> None:
    for _ in range(2):
        done = put(program, served, "small", "5", "current", count=3)
        assert done.returncode == 0, done.stderr
    assert [row[0] for row in served.rows("small")] == [1, 2, 3, 4, 5, 1]


def test_a_row_that_is_refused_is_counted(program: Path, served: Served) -> None:
    # the ring has five rows
    done = put(program, served, "small", "10", "current", count=7)
    assert done.returncode == 1
    counts = json.loads(done.stdout.splitlines()[-1])
    assert (counts["produced"], counts["stored"], counts["refused"]) == (7, 5, 2)
    assert done.stderr.count("error 547") == 2
    assert len(served.rows("small")) == 5


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("small", "5", "voltage"), "error 8145"), (("none", "5", "current"), "error 2812")],
)
def test_calls_that_can_never_succeed_are_given_up(
    program: Path, served: Served, arguments: tuple[str, ...], error: str
) -> None:
    done = put(program, served, *arguments)
    assert done.returncode == 1
    assert error in done.stderr
    assert not served.rows("small")


def test_logins_that_may_not(program: Path, served: Served) -> None:
    reader = put(program, served, "small", "5", "current", login=served.server.reader)
    assert reader.returncode == 1
    assert "error 229" in reader.stderr
    wrong = put(program, served, "small", "5", "current", login=Login(served.server.writer.user, "no-such"))
    assert wrong.returncode == 1
    assert "Login failed" in wrong.stderr
    assert "no-such" not in wrong.stderr + wrong.stdout
    assert not served.rows("small")


def test_a_password_file_is_the_owners_alone(program: Path, served: Served, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    file.chmod(0o644)
    address = f"127.0.0.1:{served.port}"
    done = run(program, "-P", file, address, served.server.writer.user, "small", "5", "current")
    assert done.returncode == 2
    assert "may be read by others" in done.stderr


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_a_waveform_goes_as_packed_binary(
    program: Path, served: Served, tmp_path: Path, version: str
) -> None:
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(f"{served.server.writer.password}\n")
    points = 20_000
    command = (program, "-v", version, "-P", password, "-a", points, "-n", 3, "-c", 0.01)
    server = (f"127.0.0.1:{served.port}", served.server.writer.user, "scope", 5, "trace")
    done = run(*map(str, (*command, *server)))
    assert done.returncode == 0, done.stderr
    rows = served.rows("scope")[-3:]
    assert len(rows) == 3
    for seq_no, _, trace in rows:
        assert trace == [seq_no + point / 4096 for point in range(points)]
