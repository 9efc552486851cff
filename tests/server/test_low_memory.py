"""Sessions that together have too much memory end, and PostgreSQL continues."""

import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import psycopg
import pytest

from ringlog.server.embedded.settings import MiB
from ringlog.server.guards.low_memory import Session, allowed, surplus
from servers import RunningServer, serving
from waiting import wait_until

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
