"""The gateway's real clients, and functions of every kind for them to call."""

import hashlib
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg import sql

from authors import create_login
from ringlog.schema.facility_files.facility_file import load_facility
from servers import FACILITY, Login, RunningServer
from tds_clients import Admin, Clients

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def ct_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ct-library client, built."""
    program = tmp_path_factory.mktemp("programs") / "ct_client"
    source = HERE / "programs" / "ct_client.c"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Werror", "-o", program, source, "-lct"], check=True)
    return program


@pytest.fixture(scope="session")
def clients(server: RunningServer, ct_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    return Clients.of(server, ct_program, tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="session")
def half_open_since() -> float:
    return time.monotonic()


@pytest.fixture(scope="session", autouse=True)
def half_open(server: RunningServer, half_open_since: float) -> Iterator[list[socket.socket]]:
    """Connections that never log in: silent, in the middle of a packet, and in the middle of a record. They
    are opened before the first test, so that the last one need not wait until they are dropped.
    """
    starts = [b"", b"\x02", b"\x02\x00\x02\x00\x00\x00\x00\x00", b"\x10\x01\x00\x08\x00\x00\x00"]
    connections = [socket.create_connection((server.host, server.port)) for _ in starts]
    for connection, start in zip(connections, starts, strict=True):
        connection.sendall(start)
    yield connections
    for connection in connections:
        connection.close()


@pytest.fixture(scope="session")
def functions(admin: Admin) -> Iterator[None]:
    """The functions of functions.sql, in schema gateway_test."""
    admin.execute((HERE / "functions.sql").read_bytes())
    yield
    admin.execute(
        "drop schema gateway_test cascade; drop role plain;"
        " drop function ringlog.enter, ringlog.enter_slowly, ringlog.say_and_fail, ringlog.definer_echo;"
        " notify ringlog_catalogue"
    )


@pytest.fixture
def own_login(admin: Admin) -> Iterator[Login]:
    """A reader and writer used by this test only: all sessions of this login belong to it."""
    login = Login(f"own_{secrets.token_hex(4)}", secrets.token_hex(8))
    create_login(admin, login, "daq_reader", "daq_writer")
    yield login
    admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(login.user)))


@pytest.fixture(scope="session")
def is_empty(admin: Admin) -> Callable[[], bool]:
    """Whether all rings and logs are empty."""
    written = sql.SQL(" union all ").join(
        sql.SQL("select from {} union all select from {} where time is not null").format(
            *(sql.Identifier(schema, table.name) for schema in ("log", "online"))
        )
        for table in load_facility(FACILITY).tables
    )
    return lambda: admin.execute(written + sql.SQL(" limit 1")).fetchone() is None


@pytest.fixture(autouse=True)
def empty_tables(admin: Admin, is_empty: Callable[[], bool]) -> None:
    """No test finds rows of others: a ring accepts no rows older than its own."""
    if not is_empty():
        for table in load_facility(FACILITY).tables:
            ring, log = (sql.Identifier(schema, table.name) for schema in ("online", "weeks"))
            admin.execute(sql.SQL("truncate {}; update {} set time = null").format(log, ring))


@pytest.fixture(scope="session")
def contents(admin: Admin) -> Callable[[], str]:
    """A fingerprint of every row of every ring and log."""

    def fingerprint() -> str:
        tables = admin.execute(
            "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname in ('online', 'weeks') and c.relkind in ('r', 'p') and not c.relispartition "
            "order by 1, 2"
        ).fetchall()
        digest = hashlib.sha256()
        for schema, table in tables:
            query = sql.SQL("select string_agg(t::text, chr(10) order by seq_no, time) from {} as t").format(
                sql.Identifier(str(schema), str(table))
            )
            digest.update(repr((schema, table, admin.execute(query).fetchone())).encode())
        return digest.hexdigest()

    return fingerprint


@pytest.fixture
def nothing_written(contents: Callable[[], str]) -> Callable[[], object]:
    """`with nothing_written():` fails if a ring or log has changed."""

    @contextmanager
    def unchanged() -> Iterator[None]:
        before = contents()
        yield
        assert contents() == before, "a refused request has written"

    return unchanged
