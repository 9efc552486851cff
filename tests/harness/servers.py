"""Programs and servers for the tests."""

import atexit
import fcntl
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pymssql
import sqlalchemy
from places import new_folder
from prepared_python import RINGLOG, Command
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ringlog.clients import listening
from ringlog.gateway.tsql_schema import install as install_tsql
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install
from ringlog.server.embedded.postgres import Postgres
from ringlog.server.embedded.settings import OPERATOR, MiB
from ringlog.server.logins import Right, add_login
from waiting import wait_until

TEST_MEMORY = 512 * MiB
FACILITY = Path(__file__).with_name("facility.toml")


def run(
    *command: str | Path, stdin: str = "", timeout: float = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end with this text as its input. The caller checks its exit code."""
    return subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | environment,
    )


def ringlog(
    *arguments: str | Path, stdin: str = "", timeout: float = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command `ringlog` to its end."""
    words = [str(word) for word in (RINGLOG, *arguments)]
    pipe = subprocess.PIPE
    with Command(
        words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=os.environ | environment
    ) as process:
        try:
            output, errors = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


# Each of several workers (pytest-xdist) has its own range of ports, outside the range that programs choose
# themselves.
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_range = range(10_000 + _worker, listening.PORTS.start, _workers)
_ports = iter(random.sample(_range, len(_range)))


def free_port() -> int:
    """A port of 127.0.0.1, of TCP and UDP, that was free a moment ago; another one at each call."""
    return listening.free_port(_ports)


def sqlalchemy_url(conninfo: str) -> sqlalchemy.URL:
    """The SQLAlchemy URL equivalent to a libpq connection string."""
    values = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=values.pop("user"),
        password=values.pop("password", None),
        database=values.pop("dbname"),
        query=values,
    )


@dataclass(frozen=True)
class Login:
    """A user name and password for TDS and PostgreSQL."""

    user: str
    password: str


WRITER = Login("writer", "write-Ω-1")
READER = Login("reader", "read-Ω-2")


@dataclass(frozen=True)
class RunningServer:
    """A `ringlog serve` process and how to reach it."""

    process: subprocess.Popen[str]
    data: Path
    host: str
    """host and port of the gateway"""
    port: int
    dsn: str
    """the administrator's libpq connection string"""
    postgres_port: int
    """TCP port of PostgreSQL itself, on 127.0.0.1"""
    writer: Login
    reader: Login

    @property
    def admin_url(self) -> sqlalchemy.URL:
        """The administrator's SQLAlchemy URL."""
        return sqlalchemy_url(self.dsn)

    def connect(self, user: str, password: str, **more: Any) -> pymssql.Connection:
        """A session over TDS, with autocommit unless `more` says otherwise."""
        return pymssql.connect(
            server=self.host,
            port=str(self.port),
            user=user,
            password=password,
            **({"autocommit": True, "login_timeout": 100} | more),
        )

    def sql(self, statement: Any, values: Any = None, *, login: Login | None = None) -> list[Any]:
        """The rows of a statement of the administrator, or of a login, in a session of its own."""
        dsn = self.dsn if login is None else self.dsn_of(login)
        with psycopg.connect(dsn, autocommit=True) as connection:
            found = connection.execute(statement, values)
            return found.fetchall() if found.description else []

    def put(self, second: int) -> None:
        """Puts a row of sr_rf with a time of this second."""
        with self.connect(self.writer.user, self.writer.password, timeout=100) as session:
            session.cursor().callproc("put_sr_rf", (1, datetime(2026, 1, 1, 0, 0, second), 1.0, 1))

    def dsn_of(self, login: Login) -> str:
        """The libpq connection string of a login over TCP, directly to PostgreSQL."""
        return make_conninfo(
            host="127.0.0.1",
            port=self.postgres_port,
            dbname="ringlog",
            user=login.user,
            password=login.password,
        )


PREPARED = "TEST_PREPARED"
"""the environment variable with the folder of prepared data, which the workers of a run share"""


@cache
def _prepared_folder() -> Path:
    if shared := os.environ.get(PREPARED):
        return Path(shared)
    folder = new_folder("prepared")
    atexit.register(shutil.rmtree, folder)
    return folder


@cache
def _prepared_data(facility: Path | None) -> Path:
    """A data directory with the two logins, and ringlog's objects for this facility or for every one, made
    once per run: a copy takes a tenth of the time. The tests' data need not survive a crash of the machine,
    nor an attack on their passwords, each login of which takes milliseconds of CPU."""
    empty = None if facility is None else _prepared_data(None)
    folder = _prepared_folder() / ("none" if facility is None else facility.stem)
    with (_prepared_folder() / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            folder.chmod(0o755)
            _prepare(Postgres(folder / "data"), facility, empty)
            (folder / "made").touch()
    return folder / "data"


def _prepare(postgres: Postgres, facility: Path | None, empty: Path | None) -> None:
    if empty is not None:
        subprocess.run(["cp", "-a", empty, postgres.data], check=True)
    with postgres.running(memory=TEST_MEMORY, port=free_port()):
        if facility is None:
            postgres.make_database()
        administrator = sqlalchemy.create_engine(sqlalchemy_url(postgres.conninfo()))
        none = Facility("none", "UTC", ())
        install(administrator, none if facility is None else load_facility(facility), [install_tsql])
        if facility is None:
            (postgres.cluster / "conf.d" / OPERATOR).write_text("fsync = off\nscram_iterations = 1\n")
            with administrator.connect() as connection:
                connection.execute(sqlalchemy.text("select pg_reload_conf()"))
            wait_until(lambda: _setting(administrator, "scram_iterations") == "1")
            add_logins(postgres.conninfo())
        # otherwise autovacuum does it in every copy
        with administrator.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sqlalchemy.text("vacuum (analyze)"))
        administrator.dispose()


def _setting(administrator: sqlalchemy.Engine, name: str) -> object:
    with administrator.connect() as connection:
        return connection.execute(sqlalchemy.text(f"show {name}")).scalar()


@contextmanager
def serving(
    data: Path, *options: str, facility: Path | None = FACILITY, prepared: bool = True
) -> Iterator[RunningServer]:
    """A `ringlog serve` on a data directory.

    A new one is a copy of the prepared one, with the logins `writer` and `reader`; with `prepared=False`
    `ringlog serve` makes it, without logins.
    """
    command = [RINGLOG, "serve", "--data", data, "--listen", "127.0.0.1:0", "--memory", "512MB", *options]
    if not data.exists():
        if prepared:
            # the facility of most tests is installed in the copy
            source = _prepared_data(facility if facility == FACILITY else None)
            subprocess.run(["cp", "-a", source, data], check=True)
        command += ["--pg-port", str(free_port())]
    if facility is not None:
        command += ["--facility", facility]
    log = data.with_name(data.name + ".stderr")
    with (
        log.open("w") as errors,
        Command([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            host, port = address_of(process, log)
            dsn = Postgres(data).conninfo()
            postgres_port = int(str(conninfo_to_dict(dsn)["port"]))
            yield RunningServer(process, data, host, port, dsn, postgres_port, WRITER, READER)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def serving_external(dsn: str, log: Path, *options: str | Path) -> Iterator[tuple[str, int]]:
    """`ringlog serve` for another PostgreSQL; yields the gateway's host and port."""
    command = [RINGLOG, "serve", "--listen", "127.0.0.1:0", *options]
    with (
        log.open("w") as errors,
        Command(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"RINGLOG_DSN": dsn},
        ) as process,
    ):
        try:
            yield address_of(process, log)
        finally:
            process.terminate()


def address_of(process: subprocess.Popen[str], log: Path) -> tuple[str, int]:
    """Host and port of the gateway of a `ringlog serve`, after it has printed them."""
    assert process.stdout is not None
    address = next((line for line in process.stdout if line.startswith("TDS on ")), None)
    assert address is not None, f"ringlog serve did not start: {log.read_text()}"
    host, port = address.removeprefix("TDS on ").strip().rsplit(":", 1)
    return host, int(port)


PATH = ("online", "log", "ringlog", "public", "gateway_test", "call_forms", "client_compat")
"""The search path of a server's database: it finds schemas of tests for sessions without a database."""


def set_path(dsn: str) -> None:
    """Sets the search path of the database, which sessions use from their login on."""
    path = sql.SQL(", ").join(sql.Identifier(schema) for schema in PATH)
    with psycopg.connect(dsn, autocommit=True) as admin:
        database = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("alter database {} set search_path = {}").format(database, path))


def add_logins(dsn: str) -> None:
    """Creates the logins `writer` and `reader`."""
    for login, right in ((WRITER, Right.WRITER), (READER, Right.READER)):
        add_login(dsn, login.user, [right], login.password)
