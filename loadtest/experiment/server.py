"""The server under load: `ringlog serve` in a process of its own, used as in production."""

import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.schema import session

WRITER, READER = "bench_writer", "bench_reader"
# seconds; the first start makes the tables, 250 of 300 columns for HALF's 25,000 PVs
_STARTED, _STOPPED = 1800.0, 600.0
_COMMAND = [sys.executable, "-P", "-m", "ringlog"]
# Settings that make an acknowledged row durable; the benchmark refuses to run without them.
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_RECORDED = (*_DURABLE, "wal_compression", "shared_buffers", "max_wal_size", "checkpoint_timeout")


@dataclass(frozen=True)
class Mark:
    """Figures at a moment. CPU in seconds since the processes began."""

    moment: float
    postgres: float
    backends: float
    """the part of `postgres` for connections over TCP: the callers' and the gateway's"""
    gateway: float
    machine: float
    """busy time of all processes of the machine, on all its cores"""
    wal: int
    """bytes written to the write-ahead log"""
    memory: int
    """resident bytes of the gateway's process"""


@dataclass(frozen=True)
class Begun:
    """The cost of the start, until the server is ready. CPU in seconds."""

    gateway: float
    postgres: float
    memory: int
    """resident bytes of the gateway's process"""


@dataclass(frozen=True)
class Server:
    """A running server: its gateway and its PostgreSQL."""

    gateway: psutil.Process
    postmaster: psutil.Process
    host: str
    port: int
    """of TDS"""
    postgres_port: int
    password: str
    """of both logins"""
    administrator: psycopg.Connection
    metrics: str
    """the URL of the gateway's counts"""
    begun: Begun

    def mark(self) -> Mark:
        row = self.administrator.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()
        assert row is not None
        own, machine = self.gateway.cpu_times(), psutil.cpu_times()
        postgres, backends = postgres_cpu(self.postmaster)
        return Mark(
            moment=time.monotonic(),
            postgres=postgres,
            backends=backends,
            gateway=own.user + own.system,
            machine=sum(machine) - machine.idle - getattr(machine, "iowait", 0.0),
            wal=int(row[0]),
            memory=self.gateway.memory_info().rss,
        )

    def conninfo(self, user: str) -> str:
        """The libpq connection string of one of the logins, straight to PostgreSQL over TCP."""
        return make_conninfo(
            host="127.0.0.1",
            port=self.postgres_port,
            dbname=self.administrator.info.dbname,
            user=user,
            password=self.password,
        )

    @property
    def administrator_conninfo(self) -> str:
        """The connection string of a superuser, by the socket."""
        return conninfo_of(self.administrator)

    def by_pymssql(self, port: int | None = None) -> Any:
        """A connection of READER through the gateway, or by another port of its machine."""
        import pymssql

        return pymssql.connect(
            server=self.host,
            port=str(port or self.port),
            user=READER,
            password=self.password,
            tds_version="7.4",
            autocommit=True,
        )

    def settings(self) -> dict[str, str]:
        """PostgreSQL's version and settings that matter here."""
        rows = self.administrator.execute(
            "select name, current_setting(name) from pg_settings where name = any(%s)", [[*_RECORDED]]
        )
        version = self.administrator.info.parameter_status("server_version") or "?"
        return {"server_version": version, **dict(sorted(rows))}


@contextmanager
def serving(
    facility: Path, data: Path, *, keep: bool, password: str | None = None, options: Sequence[str | Path] = ()
) -> Iterator[Server]:
    """A server with a facility on a data directory, with the logins WRITER and READER. The logins are made
    unless their password is given. `options` are further ones of `ringlog serve`.

    Unless the data are kept, PostgreSQL is ended without a checkpoint.
    """
    log_file = facility.with_suffix(".log")
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [
                *_COMMAND,
                "serve",
                "--facility",
                facility,
                "--data",
                data,
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "127.0.0.1:0",
                *options,
            ],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            # a session, and so a scheduling group, of its own, like a service
            start_new_session=True,
        )
    try:
        host, port = _address(process, log_file)
        gateway = psutil.Process(process.pid)
        postmaster = next(child for child in gateway.children() if "postgres" in child.name())
        own = gateway.cpu_times()
        # with the processes of its start
        begun = Begun(float(sum(own[:4])), postgres_cpu(postmaster)[0], gateway.memory_info().rss)
        metrics = _metrics(log_file)
        if password is None:
            password = secrets.token_urlsafe(12)
            for name, right in ((WRITER, "--writer"), (READER, "--reader")):
                words = ("user", "add", name, right, "--password-stdin", "--data", data)
                _ringlog(*words, stdin=f"{password}\n")
        dsn = _ringlog("dsn", "--data", data).strip()
        with session.connect(dsn, autocommit=True) as administrator:
            postgres_port = int(str(conninfo_to_dict(dsn)["port"]))
            server = Server(
                gateway, postmaster, host, port, postgres_port, password, administrator, metrics, begun
            )
            lax = [name for name in _DURABLE if server.settings()[name] != "on"]
            if lax:
                raise LoadTestError(f"{', '.join(lax)} is not on: an acknowledged row would not be durable")
            yield server
        if not keep:
            postmaster.send_signal(signal.SIGQUIT)
    finally:
        process.terminate()
        process.wait(_STOPPED)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate of `ringlog cert` and its key."""
    certificate, key = _ringlog("cert", folder).splitlines()
    return Path(certificate), Path(key)


def _address(process: subprocess.Popen[bytes], log_file: Path) -> tuple[str, int]:
    """Waits for the line with the address on which the server listens."""
    began = time.monotonic()
    while not (found := re.search(r"^TDS on (.+):(\d+)$", log_file.read_text(), re.MULTILINE)):
        if process.poll() is not None or time.monotonic() - began > _STARTED:
            reason = log_file.read_text().strip().rpartition("\n")[2]
            raise LoadTestError(f"the server did not start: {reason or 'it printed nothing'}")
        time.sleep(0.05)
    return found[1], int(found[2])


def _metrics(log_file: Path) -> str:
    """Waits for the line with the address of the metrics, which comes after that of TDS."""
    began = time.monotonic()
    while not (found := re.search(r"^metrics on (\S+)$", log_file.read_text(), re.MULTILINE)):
        if time.monotonic() - began > _STARTED:
            raise LoadTestError("the server did not print the address of its metrics")
        time.sleep(0.05)
    return found[1]


def _ringlog(*arguments: str | Path, stdin: str = "") -> str:
    done = subprocess.run([*_COMMAND, *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise LoadTestError(done.stderr.strip())
    return done.stdout


def postgres_cpu(postmaster: psutil.Process) -> tuple[float, float]:
    """CPU seconds of all of PostgreSQL, ended processes included, and of the running backends of TCP."""
    while True:
        times = postmaster.cpu_times()
        children = backends = 0.0
        for child in postmaster.children():
            with suppress(psutil.NoSuchProcess):
                spent = process_cpu(child)
                children += spent
                # the title of a backend's process has its client's address
                if "127.0.0.1(" in " ".join(child.cmdline()):
                    backends += spent
        # otherwise a process has ended meanwhile and is counted nowhere
        if postmaster.cpu_times()[2:4] == times[2:4]:
            return float(sum(times[:4]) + children), backends


def process_cpu(process: psutil.Process) -> float:
    """CPU seconds of a process of one thread, to the nanosecond: psutil's hundredths of a second would lose
    many short processes."""
    try:
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:  # a kernel without it, or the process has ended
        return float(sum(process.cpu_times()[:2]))


def conninfo_of(connection: psycopg.Connection) -> str:
    """The libpq connection string of another connection like this one, without a password."""
    info = connection.info
    return make_conninfo(host=info.host, port=info.port, dbname=info.dbname, user=info.user)


def log_rows(administrator: psycopg.Connection, table: str) -> int:
    query = sql.SQL("select count(*) from {}").format(sql.Identifier("log", table))
    row = administrator.execute(query).fetchone()
    assert row is not None
    return int(row[0])
