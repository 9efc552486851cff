"""Two machines: the primary dies, its standby takes over, a gateway dies. Writers and idle clients go on."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import pymssql
import pytest
from psycopg.conninfo import make_conninfo

from ringlog.account import Account, account_for
from servers import RINGLOG, free_port, ringlog
from waiting import wait_until

DEBIAN = Path("/usr/lib/postgresql/15/bin")
TABLES = ("magnets", "cavities", "vacuum", "beam")
FACILITY = 'timezone = "UTC"\n' + "".join(
    f'[[table]]\nname = "{name}"\nrows = 1000\ncycle = 0.1\n'
    f'column = [{{ name = "count", signal = "{name}", type = "int" }}]\n'
    for name in TABLES
)
# Every row is written down before a writer sees it.
SOURCE = """
import os

def read(table):
    file = os.open(f"given.{table.name}", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    number = os.read(file, 1_000_000).count(b"\\n") + 1
    os.write(file, f"{number}\\n".encode())
    os.close(file)
    return {"count": number}
"""


@dataclass
class Machine:
    """A PostgreSQL, the primary or its standby."""

    folder: Path
    account: Account
    port: int

    @property
    def superuser(self) -> str:
        return make_conninfo(host=str(self.folder), port=self.port, user="postgres", dbname="plant")

    def run(self, program: str, *arguments: str) -> None:
        self.account.run([str(DEBIAN / program), *arguments], cwd=self.folder)

    def start(self) -> None:
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder}"
        )
        words = ("-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options)
        self.run("pg_ctl", *words, "start")

    def promote(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "promote")

    def die(self) -> None:
        """All processes of the machine end at once."""
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            postmaster = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
            postmaster.suspend()
            processes = [postmaster, *postmaster.children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes)


def machine(folder: Path) -> Machine:
    folder.mkdir()
    account = account_for(folder / "data")
    account.own(folder)
    return Machine(folder, account, free_port())


@pytest.fixture
def machines(temporary_directory: Path) -> Iterator[tuple[Machine, Machine]]:
    """A primary with database `plant`, and its synchronous standby."""
    folder = temporary_directory / "machines"
    folder.mkdir()
    primary, standby = machine(folder / "a"), machine(folder / "b")
    try:
        primary.run(
            *("initdb", "-D", str(primary.folder / "data"), "-U", "postgres", "--encoding=UTF8"),
            *("--auth-local=trust", "--auth-host=scram-sha-256"),
        )
        primary.start()
        with psycopg.connect(primary.superuser, dbname="postgres", autocommit=True) as connection:
            connection.execute("create role keeper login createrole password 'k'")
            connection.execute("create database plant owner keeper")
        standby.run(
            *("pg_basebackup", "-h", str(primary.folder), "-p", str(primary.port), "-U", "postgres"),
            *("-D", str(standby.folder / "data"), "-R", "-c", "fast"),
        )
        standby.start()
        with psycopg.connect(primary.superuser, autocommit=True) as connection:
            connection.execute("alter system set synchronous_standby_names = '*'")
            connection.execute("select pg_reload_conf()")
            state = "select sync_state from pg_stat_replication"
            wait_until(
                lambda: connection.execute(state).fetchall() == [("sync",)],
                (standby.folder / "log").read_text,
            )
        yield primary, standby
    finally:
        primary.die()
        standby.die()


@contextmanager
def gateway(folder: Path, port: int, dsn: str) -> Iterator[subprocess.Popen[str]]:
    """`ringlog serve` before both machines."""
    password = folder.parent / "gateway.password"
    log = folder.with_suffix(".log")
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(RINGLOG, "serve", "--listen", f"127.0.0.1:{port}"),
                *("--gateway-password-file", password),
            ],
            stdout=output,
            stderr=output,
            text=True,
            env=os.environ | {"RINGLOG_DSN": dsn},
        )
    try:

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            return "TDS on " in log.read_text()

        wait_until(is_ready, log.read_text)
        yield process
    finally:
        process.terminate()
        process.wait()


def test_writers_go_on_when_machines_die(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    primary, standby = machines
    facility = tmp_path / "two.toml"
    facility.write_text(FACILITY)
    (tmp_path / "counting.py").write_text(SOURCE)
    password = tmp_path / "gateway.password"
    password.touch(0o600)
    password.write_text("of all gateways\n")
    dsn = make_conninfo(
        host="127.0.0.1,127.0.0.1",
        port=f"{primary.port},{standby.port}",
        user="keeper",
        password="k",
        dbname="plant",
    )
    made = ringlog("init", "--facility", facility, RINGLOG_DSN=dsn)
    assert made.returncode == 0, made.stderr
    for name, right in (("writer", "--writer"), ("reader", "--reader")):
        added = ringlog("user", "add", name, right, "--password-stdin", stdin="secret", RINGLOG_DSN=dsn)
        assert added.returncode == 0, added.stderr
    ports = free_port(), free_port()
    url = f"tds://writer@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"

    def numbers(machine: Machine, table: str) -> Counter[int]:
        with psycopg.connect(machine.superuser) as connection:
            query = f'select count::int from log."{table}"'.encode()
            return Counter(number for (number,) in connection.execute(query).fetchall())

    def given(table: str) -> int:
        file = tmp_path / f"given.{table}"
        return len(file.read_text().split()) if file.exists() else 0

    def rows_go_on(machine: Machine) -> None:
        """Rows that were taken from now on come into the log of each table."""
        before = {table: given(table) for table in TABLES}
        wait_until(
            lambda: all(max(numbers(machine, table), default=0) > before[table] for table in TABLES),
            (tmp_path / "load.log").read_text,
        )

    with (
        (tmp_path / "load.log").open("w") as log,
        gateway(tmp_path / "first", ports[0], dsn) as first,
        gateway(tmp_path / "second", ports[1], dsn),
        pymssql.connect(
            server="127.0.0.1", port=str(ports[1]), user="reader", password="secret", autocommit=True
        ) as idle,
        subprocess.Popen(
            [*(RINGLOG, "load", "--facility", facility, "--url", url), "--source", "python:counting:read"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env=os.environ | {"RINGLOG_PASSWORD": "secret", "RINGLOG_SPOOL": str(tmp_path / "spool")},
        ) as load,
    ):
        rows_go_on(primary)
        with idle.cursor() as cursor:
            cursor.execute("select count(*) from online..beam")
            assert cursor.fetchone() == (1000,)
        primary.die()
        standby.promote()
        rows_go_on(standby)
        with idle.cursor() as cursor:
            cursor.execute("select max(count) from log..beam")
            assert cursor.fetchone()[0] > 0, "a client that was idle does not notice"
        first.send_signal(signal.SIGKILL)
        rows_go_on(standby)
        load.send_signal(signal.SIGTERM)
        assert load.wait(60) == 0, (tmp_path / "load.log").read_text()
    for table in TABLES:
        found = numbers(standby, table)
        count = given(table)
        # the row on its way when the writer was told to end may have gone no further than the source
        assert set(range(1, count)) <= set(found)
        assert all(times == 1 for times in found.values())
