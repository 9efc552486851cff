"""A commit whose wait for the synchronous standby was cancelled is not acknowledged."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import psycopg
import pymssql
import pytest

from ringlog.clients.address import Address
from ringlog.clients.drivers import psycopg as driver
from ringlog.clients.procedure import Unanswered
from servers import RunningServer, serving
from tds_clients import Clients, errors_of
from waiting import wait_until

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
