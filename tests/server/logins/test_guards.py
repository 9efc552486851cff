"""The guards of the server: no login uses up what writers need."""

import threading
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import psycopg
import pymssql
import pytest

from ringlog.server.embedded.settings import MiB
from ringlog.server.guards.low_memory import Session, allowed, surplus
from ringlog.server.guards.temporary import MOST_WRITING, Statement, excess
from ringlog.server.guards.transaction_numbers import end_old
from servers import RunningServer, add_logins, ringlog, serving
from waiting import is_closed, wait_until

# --- no login fills PostgreSQL's table of locks for longer than a moment ---

ATTACKS = {
    "advisory locks": "select count(pg_advisory_lock(n)) from generate_series(1, 10000000) as n",
    "temporary tables": "do $$ begin for n in 1..10000000 loop"
    " execute format('create temporary table t%s (a text primary key)', n); end loop; end $$",
}


def is_put(server: RunningServer, second: int) -> bool:
    """A writer repeats a call that has failed."""
    with suppress(pymssql.Error):
        server.put(second)
        return True
    return False


@pytest.mark.parametrize("kind", ATTACKS)
def test_a_session_with_too_many_locks_ends(own: RunningServer, kind: str) -> None:
    with psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader:
        # one that was refused keeps its advisory locks
        with suppress(psycopg.errors.OutOfMemory, psycopg.OperationalError):
            reader.execute(ATTACKS[kind])
        wait_until(lambda: is_closed(reader))
    wait_until(lambda: is_put(own, 1))


def test_a_login_that_goes_on_is_locked(own: RunningServer) -> None:
    def is_locked() -> bool:
        try:
            with psycopg.connect(own.dsn_of(own.reader), autocommit=True) as reader:
                reader.execute(ATTACKS["advisory locks"])
                wait_until(lambda: is_closed(reader))
        except psycopg.errors.OutOfMemory:
            pass
        except psycopg.OperationalError as error:
            return "is not permitted to log in" in str(error)
        return False

    wait_until(is_locked)
    wait_until(lambda: is_put(own, 2))
    unlocked = ringlog("user", "unlock", own.reader.user, "--data", own.data)
    assert unlocked.returncode == 0, unlocked.stderr


# --- no login uses up PostgreSQL's transaction numbers, or keeps old rows from being removed ---

USE_UP = "do $$ begin loop perform pg_current_xact_id(); commit; end loop; end $$"


def test_a_login_that_uses_up_transaction_numbers_is_locked(own: RunningServer) -> None:
    """Its sessions end first; it connects again at once."""
    refused = threading.Event()

    def use_up() -> None:
        while not refused.is_set():
            try:
                own.sql(USE_UP, login=own.reader)
            except psycopg.OperationalError as error:
                if "is not permitted to log in" in str(error):
                    refused.set()

    threads = [threading.Thread(target=use_up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = own.data.with_name(own.data.name + ".stderr")
    wait_until(lambda: "login reader was locked: its sessions used up transaction numbers" in log.read_text())
    own.put(1)
    unlocked = ringlog("user", "unlock", own.reader.user, "--data", own.data)
    assert unlocked.returncode == 0, unlocked.stderr
    psycopg.connect(own.dsn_of(own.reader)).close()


def test_an_old_transaction_ends(own: RunningServer) -> None:
    with (
        closing(psycopg.connect(own.dsn_of(own.writer))) as writer,
        psycopg.connect(own.dsn, autocommit=True) as admin,
    ):
        writer.execute("set idle_in_transaction_session_timeout = 0")
        writer.execute("select 1 from pg_class")
        end_old(admin, timedelta(days=1))
        writer.execute("select 1")
        wait_until(lambda: end_old(admin, timedelta(0)) or is_closed(writer))


# --- sessions that together have too much memory end, and PostgreSQL continues ---

NOON = datetime(2034, 1, 1, 12, tzinfo=UTC)
SESSIONS = 12
# of a process of PostgreSQL with --memory 512MB less than its own limit
FILL = "select set_config('own.text', repeat('x', 100000000), false) is not null"


def session(pid: int, mebibytes: int, *, writes: bool = False) -> Session:
    return Session(pid, "one", NOON, writes, mebibytes * MiB)


def test_the_largest_sessions_of_readers_end_first() -> None:
    sessions = [session(1, 500), session(2, 900, writes=True), session(3, 300), session(4, 20)]
    assert [each.pid for each in surplus(sessions, 2000 * MiB)] == []
    assert [each.pid for each in surplus(sessions, 1300 * MiB)] == [1]
    assert [each.pid for each in surplus(sessions, 100 * MiB)] == [1, 3, 2]


@pytest.mark.long
def test_a_crowd_of_large_sessions(temporary_directory: Path) -> None:
    with serving(temporary_directory / "memory") as server:
        ((began,),) = server.sql("select pg_postmaster_start_time()")
        end = threading.Event()
        ended: list[psycopg.Error] = []

        def fill() -> None:
            try:
                with psycopg.connect(server.dsn_of(server.reader), autocommit=True) as reader:
                    reader.execute(FILL)
                    end.wait()
                    reader.execute("select 1")
            except psycopg.OperationalError as error:
                ended.append(error)

        threads = [threading.Thread(target=fill) for _ in range(SESSIONS)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: "had too much memory" in server.data.with_name("memory.stderr").read_text())
            wait_until(lambda: own_memory(server) <= allowed(512 * MiB) + SESSIONS * 32 * MiB)
            for second in range(5):
                with server.connect(server.writer.user, server.writer.password) as writer:
                    at = datetime(2026, 1, 1, 0, 0, second)
                    writer.cursor().callproc("put_sr_rf", (1, at, 1.0, 1))
        finally:
            end.set()
            for thread in threads:
                thread.join()
        assert 0 < len(ended) < SESSIONS
        assert server.sql("select pg_postmaster_start_time()")[0] == (began,)


def own_memory(server: RunningServer) -> int:
    with psycopg.connect(server.dsn) as admin:
        query = "select pid from pg_stat_activity where usename = %s"
        pids = [pid for (pid,) in admin.execute(query, [server.reader.user])]
    total = 0
    for pid in pids:
        with suppress(psutil.Error):
            memory = psutil.Process(pid).memory_info()
            total += memory.rss - memory.shared
    return total


# --- temporary files of all statements together are limited ---

CANCELLED = 3617  # (ASE Troubleshooting and Error Messages Guide)
SORT = "select count(*) from (select distinct i from generate_series(1, 3000000) i) as d"


def statement(pid: int, login: str) -> Statement:
    return Statement(pid, login, NOON + timedelta(seconds=pid))


def test_the_youngest_statements_of_the_greediest_login_end() -> None:
    running = [statement(1, "modest"), *(statement(pid, "greedy") for pid in range(2, 7))]
    sizes = dict.fromkeys(range(1, 7), 10)
    ended = excess(running, sizes, writing=set(sizes), most=3, limit=1000)
    assert [each.pid for each in ended] == [6, 5, 4]


def test_statements_that_no_longer_write_remain() -> None:
    running = [statement(pid, "one") for pid in range(1, 7)]
    sizes = dict.fromkeys(range(1, 7), 10)
    assert excess(running, sizes, writing={1, 2, 3}, most=3, limit=1000) == []


def test_the_largest_files_are_ended_first_if_all_are_too_large() -> None:
    running = [statement(1, "one"), statement(2, "two"), statement(3, "two")]
    ended = excess(running, {1: 50, 2: 70, 3: 20}, writing={1, 2, 3}, most=3, limit=100)
    assert [each.pid for each in ended] == [2]


@pytest.mark.long
def test_a_crowd_of_sorts_is_limited(data: Path) -> None:
    """The sessions continue; cancelled ones get the error of a cancelled statement."""
    crowd = MOST_WRITING + 8
    with serving(data, prepared=False) as server:
        add_logins(server.dsn)
        ends: Counter[int] = Counter()
        later: list[str] = []

        def sort() -> None:
            login = server.reader
            with server.connect(login.user, login.password, timeout=300) as connection:
                cursor = connection.cursor()
                try:
                    cursor.execute(SORT)
                    cursor.fetchall()
                    ends[0] += 1
                except pymssql.Error as error:
                    ends[error.args[0]] += 1
                try:
                    cursor.execute("select 1")
                    cursor.fetchall()
                except pymssql.Error as error:
                    later.append(str(error))

        threads = [threading.Thread(target=sort) for _ in range(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert later == [], "every session goes on"
        assert ends[CANCELLED] > 0
        assert ends[0] + ends[CANCELLED] == crowd
