"""A crowd of connections directly to PostgreSQL leaves connections for writers."""

import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pymssql
import pytest
from case_tables import cases
from psycopg import errors, sql

from ringlog.server.embedded.settings import CONNECTIONS
from ringlog.server.guards.direct import Direct, Limits, surplus
from servers import RunningServer, serving
from waiting import is_closed, wait_until

NOON = datetime(2034, 1, 1, 12, tzinfo=UTC)
LIMITS = Limits(of_reader=3, of_readers=5, of_writer=8, of_all=20, unknown=10)
WRITE_LARGE_OBJECTS = cases(__file__, "write_large_objects")
# PostgreSQL's documentation, SQL commands: all that make something that outlives a session
STORING = cases(__file__, "storing")
SASL = 10  # of AuthenticationRequest (PostgreSQL's documentation, message formats)


def connections(login: str, number: int, *, idle: int = 0, writes: bool = False) -> list[Direct]:
    """Those with the greatest numbers are the youngest; the first `idle` are idle, the first for longest."""
    start = NOON + timedelta(seconds=1)
    return [
        Direct(pid, login, start + timedelta(seconds=pid), "x", pid, start if pid < idle else None, writes)
        for pid in range(number)
    ]


def test_idle_connections_end_before_the_youngest() -> None:
    some = connections("one", 6, idle=2)
    assert {each.pid for each in surplus(some, 6, LIMITS)} == {0, 1, 5}


def test_all_readers_together_have_a_limit() -> None:
    some = [each for login in "abc" for each in connections(login, 3)] + connections("w", 8, writes=True)
    ended = surplus(some, len(some), LIMITS)
    assert len(ended) == 4
    assert not any(each.writes for each in ended)


def test_readers_leave_connections_to_others() -> None:
    """16 connections are of ringlog's processes."""
    assert len(surplus(connections("a", 3) + connections("b", 2), 22, LIMITS)) == 2
    assert surplus(connections("a", 3) + connections("b", 2), 20, LIMITS) == []


def put(session: pymssql.Connection, second: int) -> None:
    session.cursor().callproc("put_sr_rf", (1, datetime(2026, 1, 1, 0, 0, second), 1.0, 1))


def of_reader(server: RunningServer) -> int:
    row = server.sql(
        "select count(*) from pg_stat_activity where usename = %s and application_name = 'crowd'",
        [server.reader.user],
    )[0]
    assert row is not None
    return int(row[0])


def test_a_crowd_of_a_reader_leaves_writers_their_connections(own: RunningServer) -> None:
    """The reader connects again and again, keeps all connections, and removes its own time limits."""
    with ExitStack() as stack:
        old = stack.enter_context(own.connect(own.writer.user, own.writer.password, timeout=100))
        put(old, 1)
        # connections that the gateway opens in the reader's name do not count
        sessions = [
            stack.enter_context(own.connect(own.reader.user, own.reader.password, autocommit=False))
            for _ in range(Limits.of(CONNECTIONS).of_reader + 3)
        ]
        processes = []
        for session in sessions:
            cursor = session.cursor()
            cursor.execute("select pg_backend_pid()")
            processes.append(cursor.fetchall())
        end = threading.Event()
        refused = threading.Event()
        opened: list[psycopg.Connection] = []

        def crowd() -> None:
            while not end.is_set():
                try:
                    opened.append(
                        psycopg.connect(
                            own.dsn_of(own.reader),
                            application_name="crowd",
                            options="-c idle_session_timeout=0",
                        )
                    )
                except psycopg.OperationalError:
                    refused.set()

        threads = [threading.Thread(target=crowd) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: refused.is_set() or len(opened) > 2 * CONNECTIONS)
            for second in range(2, 12):
                with own.connect(own.writer.user, own.writer.password, timeout=100) as new:
                    put(new, second)
                put(old, second + 20)
        finally:
            end.set()
            for thread in threads:
                thread.join()
        wait_until(lambda: of_reader(own) <= Limits.of(CONNECTIONS).of_reader)
        for session, process in zip(sessions, processes, strict=True):
            cursor = session.cursor()
            cursor.execute("select pg_backend_pid()")
            assert cursor.fetchall() == process
        for connection in opened:
            connection.close()


def test_connections_that_never_log_in_end(own: RunningServer) -> None:
    words = b"user\0reader\0database\0ringlog\0\0"
    startup = struct.pack(">ii", len(words) + 8, 196_608) + words
    with ExitStack() as stack:
        silent = []
        for _ in range(CONNECTIONS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", own.postgres_port), timeout=60))
            with suppress(ConnectionError):
                one.sendall(startup)
            silent.append(one)
        answers = [one.recv(9) for one in silent]
        asked = [answer for answer in answers if answer[:1] == b"R" and answer[-1] == SASL]
        assert len(asked) > CONNECTIONS // 2
        for second in range(40, 44):
            with own.connect(own.writer.user, own.writer.password, timeout=100) as new:
                put(new, second)


def test_notifications_of_a_reader_cost_a_bounded_share(temporary_directory: Path) -> None:
    """Each could make the gateway read its catalogue, and open its connections for commits again."""
    end = threading.Event()
    sent = [0] * 2
    # a server whose connections are those of this test
    with serving(temporary_directory / "notified") as server:

        def notify(number: int) -> None:
            with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader:
                while not end.is_set():
                    reader.execute("select pg_notify('ringlog_catalogue', md5(random()::text))")
                    sent[number] += 1

        with (
            psycopg.connect(server.dsn, autocommit=True) as admin,
            server.connect(server.writer.user, server.writer.password, timeout=100) as writer,
        ):
            put(writer, 1)
            sessions = (
                "select pg_stat_clear_snapshot(), sessions from pg_stat_database where datname = 'ringlog'"
            )
            (_, before) = admin.execute(sessions).fetchone() or (None, 0)
            begun = time.monotonic()
            threads = [threading.Thread(target=notify, args=[number]) for number in range(2)]
            for thread in threads:
                thread.start()
            try:
                for second in range(2, 16):
                    put(writer, second)
                wait_until(lambda: sum(sent) > 10_000)
            finally:
                end.set()
                for thread in threads:
                    thread.join()
            took = time.monotonic() - begun
            (_, after) = admin.execute(sessions).fetchone() or (None, 0)
    # the gateway renews four connections, at most four times a second; the server's guards make some too
    assert after - before < 64 + (4 * 4 + 4) * took


def test_a_listener_that_reads_nothing_is_ended(own: RunningServer) -> None:
    payload = "select pg_notify('other', repeat('x', 7900) || n) from generate_series(1, 12000) as n"

    def is_ended(slow: psycopg.Connection) -> bool:
        # the queue may be full before the server looks at it again, or the sender has the oldest transaction
        refusals = (psycopg.errors.ProgramLimitExceeded, psycopg.errors.AdminShutdown)
        with suppress(*refusals), psycopg.connect(own.dsn_of(own.reader), autocommit=True) as sender:
            sender.execute(payload)
        return is_closed(slow)

    with psycopg.connect(own.dsn_of(own.reader)) as slow, psycopg.connect(own.dsn, autocommit=True) as admin:
        slow.execute("listen other")
        slow.commit()
        slow.execute("select 1")
        wait_until(lambda: is_ended(slow))
        # the next notification wakes the listeners that have read nothing since the sender's end
        usage = "select pg_notification_queue_usage() < 0.01"
        wait_until(lambda: admin.execute("notify other") and admin.execute(usage).fetchone() == (True,))
    with own.connect(own.writer.user, own.writer.password, timeout=100) as writer:
        put(writer, 44)


def self_of(server: RunningServer) -> sql.Identifier:
    return sql.Identifier(server.reader.user)


def test_a_reader_stores_nothing_in_any_database(temporary_directory: Path) -> None:
    """The site was made by an earlier ringlog: PostgreSQL's defaults are in force until the next start."""
    data = temporary_directory / "stores"
    with serving(data) as server:
        server.sql("create database other template template0")
        for name in ("ringlog", "postgres", "template1"):
            with psycopg.connect(server.dsn, dbname=name, autocommit=True) as admin:
                admin.execute(sql.SQL("grant connect on database {} to public").format(sql.Identifier(name)))
                for function in WRITE_LARGE_OBJECTS:
                    admin.execute(
                        sql.SQL("grant execute on function {} to public").format(sql.Identifier(function))
                    )
                admin.execute("grant create on schema public to public")
            with psycopg.connect(server.dsn_of(server.reader), dbname=name) as reader:
                reader.execute("select lo_from_bytea(0, 'a')")
                reader.execute("create table public.stored ()")
                reader.rollback()
                long = sql.Literal("x" * 20_000)
                reader.execute(sql.SQL("alter role {} set search_path = {}").format(self_of(server), long))
                reader.execute(sql.SQL("alter role {} set statement_timeout = '1h'").format(self_of(server)))
    with serving(data) as server:
        for name in ("postgres", "template1"):
            with pytest.raises(psycopg.OperationalError, match=f'permission denied for database "{name}"'):
                psycopg.connect(server.dsn_of(server.reader), dbname=name)
        for name in ("ringlog", "other"):
            with psycopg.connect(server.dsn_of(server.reader), dbname=name, autocommit=True) as reader:
                for function, arguments in WRITE_LARGE_OBJECTS.items():
                    with pytest.raises(errors.InsufficientPrivilege, match="function lo"):
                        reader.execute(f"select {function}({arguments})".encode())
                for statement in STORING:
                    try:
                        reader.execute(statement)
                    except (errors.InsufficientPrivilege, errors.ObjectNotInPrerequisiteState):
                        continue
                    finally:
                        reader.rollback()
                    pytest.fail(f"{name}: {statement}")
        with psycopg.connect(server.dsn) as admin:
            query = "select setconfig from pg_db_role_setting where setrole = %s::regrole"
            ((settings,),) = admin.execute(query, [server.reader.user]).fetchall()
            assert "statement_timeout=1h" in settings
            assert not any(setting.startswith("search_path") for setting in settings)
        with server.connect(server.writer.user, server.writer.password) as session:
            put(session, 1)
