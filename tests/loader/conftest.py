"""A server of the loader's own, with fast tables that no other test writes to, and `ringlog load`."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from prepared_python import RINGLOG, Command
from psycopg import sql

from ringlog.clients import Address
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.facility_file import load_facility
from servers import RunningServer, serving

FACILITY = Path(__file__).with_name("facility.toml")


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, where thousands of rows are synced quickly."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def facility() -> Facility:
    return load_facility(FACILITY)


@pytest.fixture(scope="session")
def quick_server(temporary_directory: Path) -> Iterator[RunningServer]:
    """`ringlog serve` with tests/loader/facility.toml and the logins `writer` and `reader`."""
    with serving(temporary_directory / "quick", facility=FACILITY) as running:
        yield running


@pytest.fixture(scope="session")
def address(quick_server: RunningServer) -> Address:
    """The address for the writer's login."""
    return Address(quick_server.writer.user, quick_server.host, quick_server.port)


@dataclass(frozen=True)
class Load:
    """A `ringlog load` process."""

    process: subprocess.Popen[str]

    def stop(self) -> tuple[int, str]:
        """Stops it; returns its exit code and output."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Waits until it ends; returns its exit code and output."""
        output, _ = self.process.communicate(timeout=100)
        return self.process.returncode, output


def empty(server: RunningServer, table: str) -> None:
    """Empties ring and log of a table."""
    ring, log = (sql.Identifier(schema, table) for schema in ("online", "weeks"))
    server.sql(sql.SQL("truncate {}; update {} set time = null").format(log, ring))


@pytest.fixture(autouse=True)
def nothing_of_others(request: pytest.FixtureRequest) -> None:
    """The shared server has no rows, claims, losses or events of an earlier test."""
    if "quick_server" in request.fixturenames:
        server = request.getfixturevalue("quick_server")
        for table in load_facility(FACILITY).tables:
            empty(server, table.name)
        server.sql("truncate ringlog.writer, ringlog.ledger, ringlog.event, ringlog.arrival")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """The folder of spools of this test alone."""
    return tmp_path / "spool"


@pytest.fixture
def load(quick_server: RunningServer, address: Address, spool: Path) -> Iterator[Callable[..., Load]]:
    """Starts `ringlog load` as the writer, with these further options; a later one takes precedence."""
    started: list[Load] = []

    def start(*options: str | Path) -> Load:
        process = Command(
            [RINGLOG, "load", "--facility", FACILITY, "--url", str(address), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # a process group of its own, like a service
            start_new_session=True,
            env=os.environ | {"RINGLOG_PASSWORD": quick_server.writer.password, "RINGLOG_SPOOL": str(spool)},
        )
        started.append(Load(process))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


@pytest.fixture
def stored(quick_server: RunningServer) -> Callable[[str], list[tuple[object, ...]]]:
    """The rows of a table's log, oldest first; times in UTC."""

    def read(table: str) -> list[tuple[object, ...]]:
        query = sql.SQL("select * from {} order by time, seq_no").format(sql.Identifier("log", table))
        with psycopg.connect(quick_server.dsn, options="-c timezone=UTC") as connection:
            # in binary form a real is exact, not its shortest decimal
            return connection.execute(query, binary=True).fetchall()

    return read
