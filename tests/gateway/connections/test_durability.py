"""Acknowledged rows survive the death of any process, and a stop waits for running calls."""

import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import psutil
import psycopg
import pytest

from servers import RunningServer, add_logins, serving, set_path
from tds_clients import Clients, Param
from waiting import is_alive, once, wait_until
from writing import Writers

FUNCTIONS = Path(__file__).with_name("functions.sql")
COLUMNS = "seq_no, time, a_real, a_double::int"


def postmaster(server: RunningServer) -> psutil.Process:
    (process,) = psutil.Process(server.process.pid).children()
    return process


def kill_a_backend(server: RunningServer) -> None:
    """Kills a backend, after which PostgreSQL ends all others and restarts by itself; waits for that."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        backends = admin.execute(
            "select pid from pg_stat_activity where backend_type = 'client backend'"
            " order by application_name = 'ringlog group commit' desc"
        ).fetchall()
        psutil.Process(backends[0][0]).kill()
        wait_until(lambda: not any(is_alive(pid) for (pid,) in backends))


def kill_the_postmaster(server: RunningServer) -> None:
    postmaster(server).kill()


def kill_the_server(server: RunningServer) -> None:
    server.process.kill()


@contextmanager
def stopped_when(
    server: RunningServer, words: str, then: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Stops the server while a statement with this text runs, and then calls `then`."""

    def stop() -> None:
        server.process.send_signal(signal.SIGTERM)
        then()

    query = (
        "select count(*) from pg_stat_activity"
        " where state = 'active' and query like %s and pid <> pg_backend_pid()"
    )
    with (
        psycopg.connect(server.dsn, autocommit=True) as admin,
        once(
            lambda: admin.execute(query, [f"%{words}%"]).fetchone() != (0,),
            stop,
        ),
    ):
        yield


@pytest.fixture(scope="module")
def data(temporary_directory: Path) -> Path:
    """A data directory with a writer."""
    data = temporary_directory / "killed"
    with serving(data, prepared=False) as server:
        add_logins(server.dsn)
    return data


@pytest.fixture(scope="module")
def writings() -> list[Writers]:
    """The rows written so far."""
    return []


@pytest.mark.parametrize(
    "kill",
    [
        kill_the_postmaster,
        *(pytest.param(kill, marks=pytest.mark.long) for kill in (kill_a_backend, kill_the_server)),
    ],
)
def test_every_acknowledged_row_survives_kill_9(
    data: Path,
    ct_program: Path,
    tmp_path: Path,
    writings: list[Writers],
    kill: Callable[[RunningServer], None],
) -> None:
    """Writers over RPC, kill -9 at a random moment, start again, look for every row."""
    with serving(data, facility=None) as server:
        clients = Clients.of(server, ct_program, tmp_path)
        start = datetime(2034, 1, 1 + len(writings))
        writers = Writers(clients, "put_every_type", start, rows=10)
        with writers.running(8), clients.ct(server.reader, "7.4") as reader:
            assert reader.call("last_every_type").statuses == [0]
            writers.wait_for_more(random.randint(51, 300))
            kill(server)
            if kill is kill_a_backend:
                # the gateway continues by itself
                writers.wait_for_more(200)
                # a connection that was idle then still works
                answer = reader.call("last_every_type")
                assert (answer.errors, answer.statuses) == ([], [0]), answer
            else:
                wait_until(lambda: writers.errors)
        assert writers.errors, "the death was noticed"
        writings.append(writers)
        if kill is not kill_a_backend:
            assert server.process.wait(100) != 0
    with serving(data, facility=None) as server:
        for writers in writings:
            writers.check(server.dsn, "log.every_type", COLUMNS)
            newest = max(writers.acknowledged, key=lambda row: row[1])
            with psycopg.connect(server.dsn) as admin:
                ring = admin.execute("select max(time at time zone 'Asia/Tokyo') from online.every_type")
                assert str(ring.fetchone()) >= str((newest[1],))


@pytest.mark.long
def test_a_stop_waits_for_running_calls(data: Path, ct_program: Path, tmp_path: Path) -> None:
    with serving(data, facility=None) as server:
        server.sql(FUNCTIONS.read_bytes())
        set_path(server.dsn)
        clients = Clients.of(server, ct_program, tmp_path)
        with (
            clients.ct(server.writer) as running,
            clients.ct(server.writer, "7.4") as idle,
            psycopg.connect(server.dsn) as holder,
        ):

            def let_go() -> None:
                """Lets the call end after the gateway has begun to stop, when it accepts no more clients."""

                def is_closed() -> bool:
                    with socket.socket() as probe:
                        return probe.connect_ex((server.host, server.port)) != 0

                wait_until(is_closed)
                holder.close()

            assert idle.call("enter", [Param("char", "before")]).statuses == [0]
            holder.execute("lock table gateway_test.journal in share mode")
            with stopped_when(server, "enter", let_go):
                answer = running.call("enter", [Param("char", "slow")])
            assert (answer.errors, answer.statuses) == ([], [0])
            assert idle.call("enter", [Param("char", "after")]).end != "results"
        assert server.process.wait(100) == 0
    with serving(data, facility=None) as server, psycopg.connect(server.dsn) as admin:
        entries = admin.execute("select entry from gateway_test.journal order by id").fetchall()
        assert entries == [("before",), ("slow",)]


@pytest.mark.long
def test_a_stop_ends_long_statements(data: Path, ct_program: Path, tmp_path: Path) -> None:
    with serving(data, facility=None) as server:
        clients = Clients.of(server, ct_program, tmp_path)
        with clients.ct(server.reader) as running:
            with stopped_when(server, "generate_series"):
                answer = running.language(
                    "select sum(a.n * b.n)"
                    " from generate_series(1, 1000000) a(n), generate_series(1, 100000) b(n)"
                )
            assert answer.error.number == 6005
            assert answer.error.text.startswith("The server is stopping: this statement was ended.")
            assert server.process.wait(100) == 0
