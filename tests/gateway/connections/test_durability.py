"""Acknowledged rows survive the death of any process, and a stop waits for running calls."""

import random
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import psutil
import psycopg
import pymssql
import pytest

from ringlog.clients.address import Address
from ringlog.clients.drivers import psycopg as driver
from ringlog.clients.procedure import Unanswered
from servers import RunningServer, add_logins, serving, set_path
from tds_clients import Clients, Param, errors_of
from waiting import is_alive, once, wait_until
from writing import Writers

FUNCTIONS = Path(__file__).parents[1] / "functions.sql"
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
                query = "select max(time at time zone 'Asia/Tokyo') from online.every_type"
                ((latest,),) = admin.execute(query).fetchall()
                assert latest >= newest[1]


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


# --- a commit whose wait for the synchronous standby was cancelled is not acknowledged ---

START = datetime(2031, 5, 1)

SITE = Path(__file__).with_name("standby.sql").read_text()


@pytest.fixture(scope="module")
def alone(temporary_directory: Path) -> Iterator[RunningServer]:
    """A server whose commits wait for a missing standby."""
    with (
        serving(temporary_directory / "alone") as server,
        psycopg.connect(server.dsn, autocommit=True) as admin,
    ):
        admin.execute(SITE)
        admin.execute("notify ringlog_catalogue")
        admin.execute("alter system set synchronous_standby_names = 'nobody'")
        admin.execute("select pg_reload_conf()")
        # PostgreSQL reads its settings a moment later
        wait_until(lambda: waits_for_standby(server.dsn))
        try:
            yield server
        finally:
            admin.execute("alter system reset synchronous_standby_names")
            admin.execute("select pg_reload_conf()")


def waits_for_standby(dsn: str) -> bool:
    """Whether a commit is waiting, so that its wait can be ended."""
    warnings: list[object] = []
    with (
        psycopg.connect(dsn, autocommit=True) as admin,
        psycopg.connect(dsn, autocommit=True) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        writer.add_notice_handler(warnings.append)
        inserted = pool.submit(writer.execute, "insert into site.entry values (0)")
        waiting = (
            "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and pid = %s"
        )
        wait_until(lambda: inserted.done() or admin.execute(waiting, [writer.info.backend_pid]).fetchall())
        inserted.result()
    return bool(warnings)


def put(connection: pymssql.Connection, second: int) -> None:
    values = (1, START.replace(second=second), 1, 1, 1, 1, 1, True, "a")
    connection.cursor().callproc("put_every_type", values)


def insert(connection: pymssql.Connection, _: int) -> None:
    connection.cursor().execute("insert into site.entry values (100)")


def insert_and_commit(connection: pymssql.Connection, _: int) -> None:
    connection.cursor().execute("begin tran insert into site.entry values (101) commit tran")


def enter(connection: pymssql.Connection, number: int) -> None:
    connection.cursor().callproc("site.enter", (number,))


def enter_alone(connection: pymssql.Connection, number: int) -> None:
    connection.cursor().callproc("site.enter_alone", (number,))


def bulk_copy(connection: pymssql.Connection, number: int) -> None:
    connection.bulk_copy("site.entry", [(number,), (number,)])


def end_waiting(server: RunningServer, how: str, call: Callable[[], object]) -> None:
    """Calls, and ends the commit's wait for the standby."""
    waiting = (
        f"select {how}(pid) from pg_stat_activity where wait_event = 'SyncRep' "
        f"and (application_name = 'ringlog group commit' or usename = '{server.writer.user}')"
    )
    with psycopg.connect(server.dsn, autocommit=True) as admin, ThreadPoolExecutor(1) as pool:
        called = pool.submit(call)
        wait_until(lambda: called.done() or admin.execute(waiting).fetchall())  # type: ignore[arg-type]
        called.result()


@pytest.mark.long
@pytest.mark.parametrize("call", [put, enter, enter_alone, insert, insert_and_commit, bulk_copy])
def test_a_commit_whose_wait_is_cancelled_is_not_acknowledged(
    alone: RunningServer,
    ct_program: Path,
    tmp_path: Path,
    call: Callable[[pymssql.Connection, int], None],
) -> None:
    """PostgreSQL, "Planning for High Availability": the end of the wait is a warning only."""
    clients = Clients.of(alone, ct_program, tmp_path)
    with clients.pymssql(alone.writer) as connection:
        for number in range(2):
            with pytest.raises((pymssql.Error, pymssql._mssql.MSSQLException)) as raised:
                end_waiting(alone, "pg_cancel_backend", lambda number=number: call(connection, number))
            error = errors_of(raised.value)
            assert (error.number, "synchronous standby" in error.text) == (50000, True)
        # the session continues
        cursor = connection.cursor()
        cursor.execute("select @@trancount")
        assert cursor.fetchone() == (0,)


def test_a_commit_whose_process_is_ended_is_not_acknowledged(
    alone: RunningServer, ct_program: Path, tmp_path: Path
) -> None:
    clients = Clients.of(alone, ct_program, tmp_path)
    with clients.pymssql(alone.writer) as connection:
        with pytest.raises(pymssql.Error) as raised:
            end_waiting(alone, "pg_terminate_backend", lambda: put(connection, 30))
        assert errors_of(raised.value).number == 50000


def test_the_native_driver_does_not_treat_it_as_an_answer(alone: RunningServer) -> None:
    address = Address(alone.writer.user, "127.0.0.1", alone.postgres_port, "ringlog", driver="psycopg")
    connection = driver.connect(
        address, alone.writer.password, autocommit=True, login_timeout=100, timeout=100
    )
    with connection:
        arguments = (1, START.replace(second=40), 1, 1, 1, 1, 1, True, "a")
        with pytest.raises(Unanswered, match="synchronous standby"):
            end_waiting(
                alone,
                "pg_cancel_backend",
                lambda: driver.call(connection, "put_every_type", arguments, {}),
            )
