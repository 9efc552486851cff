"""A login cannot block writers by its locks."""

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from servers import WRITER, Login, RunningServer, free_port, ringlog, serving

pytestmark = pytest.mark.long

FACILITY = Path(__file__).with_name("lesser_locks.toml").read_text()
NOW = datetime.now(UTC).replace(microsecond=0)
OLD = NOW - timedelta(weeks=6)
STRONGER = (
    "row share",
    "row exclusive",
    "share update exclusive",
    "share",
    "share row exclusive",
    "exclusive",
    "access exclusive",
)
OPEN = ("tsql", "global_table")
"""Every login may insert into it, by a policy: "row exclusive" and weaker locks do not block inserts."""
ADVISORY_KEYS = """
select key from (
  values
    (hashtext('ringlog summaries')::bigint), (hashtext('ringlog')),
    (0x7765656B73), (0x72696E676C6F67), (0x6D6F76696E67), (0x706172616D)
) as keys (key)
union
select (kind << 32) | relation::oid::bigint
from unnest(array[0x72696E67, 0x636C6169]::bigint[]) as kind,
  unnest(array['online.magnets', 'online.vacuum']::regclass[]) as relation
"""


@pytest.fixture(scope="module")
def watched(temporary_directory: Path) -> Iterator[tuple[RunningServer, int]]:
    folder = temporary_directory / "locked"
    folder.mkdir()
    facility = folder / "plant.toml"
    facility.write_text(FACILITY)
    port = free_port()
    with serving(folder / "data", "--metrics", f"127.0.0.1:{port}", facility=facility) as server:
        yield server, port


def slow_calls(port: int) -> float:
    """Calls that waited for a lock for more than 100 ms (docs/explanation/gateway.md, Group commit)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=100) as answer:
        lines = str(answer.read(), "utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("ringlog_gateway_group_commit_quarantines_total"))
    return float(line.split()[-1])


def refused(connection: psycopg.Connection, statement: sql.Composable) -> bool:
    try:
        with connection.transaction():
            connection.execute(statement)
    except errors.InsufficientPrivilege:
        return True
    return False


@contextmanager
def hindering(server: RunningServer, login: Login) -> Iterator[psycopg.Connection]:
    """All locks that the login can take, in an open transaction that has read the logs."""
    with psycopg.connect(server.dsn_of(login)) as connection:
        connection.execute("set transaction isolation level serializable")
        for (key,) in connection.execute(ADVISORY_KEYS).fetchall():
            connection.execute("select pg_advisory_lock(%s)", [key])
        if login == WRITER:
            # a row of a table that is not written here, not committed
            connection.execute("select ringlog.put_vacuum(row (null, now(), 1)::online.vacuum)")
        else:
            for table in ("magnets", "vacuum"):
                name, cursor = sql.Identifier("log", table), sql.Identifier(table)
                connection.execute(sql.SQL("declare {} cursor for select * from {}").format(cursor, name))
                connection.execute(sql.SQL("fetch all from {}").format(cursor))
                connection.execute(sql.SQL("lock table {} in access share mode").format(name))
        tables = connection.execute(
            "select relnamespace::regnamespace::text, relname from pg_class"
            " where relkind in ('r', 'p')"
            " and relnamespace::regnamespace::text in ('ringlog', 'online', 'log', 'tsql')"
        ).fetchall()
        assert ("ringlog", "one_change") in tables
        for table in tables:
            for mode in STRONGER[2 if table == OPEN else 0 :]:
                lock = sql.SQL(f"lock table only {{}} in {mode} mode nowait").format(sql.Identifier(*table))
                assert refused(connection, lock), (table, mode)
            assert refused(connection, sql.SQL("select from {} for key share").format(sql.Identifier(*table)))
        yield connection


@pytest.mark.parametrize("login", ["reader", "writer"])
def test_writers_and_housekeeping_continue(watched: tuple[RunningServer, int], login: str) -> None:
    server, port = watched
    # rows of the other login are on the server already
    old = OLD - timedelta(weeks=1 + (login == "writer"))
    begin = datetime.now(UTC)
    with server.connect(WRITER.user, WRITER.password) as connection, connection.cursor() as cursor:
        for number in range(110):
            cursor.callproc("put_magnets", (number % 100 + 1, old + timedelta(seconds=number), 1.0))
    with psycopg.connect(server.dsn_of(WRITER)) as claiming:
        claimed = claiming.execute("select ringlog.claim_writer('magnets', 'spool', 'somebody', true)")
        ((epoch,),) = claimed.fetchall()
    before = slow_calls(port)
    done = threading.Event()
    stored = 0
    with hindering(server, getattr(server, login)) as hinderer:

        def maintain() -> None:
            ended = ringlog("maintain", "--data", server.data)
            assert "Traceback" not in ended.stderr
            done.set()

        housekeeping = threading.Thread(target=maintain)
        housekeeping.start()
        with server.connect(WRITER.user, WRITER.password) as connection, connection.cursor() as cursor:
            while not done.is_set() or stored < 100:
                moment = begin + timedelta(milliseconds=10 * stored)
                cursor.callproc("put_magnets", (None, moment, 1.0))
                if login == "reader":
                    cursor.callproc("put_vacuum", (None, moment, 1.0))
                cursor.callproc("put_magnets_claimed", (stored % 100 + 1, moment, 2.0, epoch))
                stored += 1
        housekeeping.join()
        assert slow_calls(port) == before
        hinderer.rollback()
    ended = ringlog("maintain", "--data", server.data)
    assert ended.returncode == 0, ended
    with psycopg.connect(server.dsn) as administrator:
        waiting = administrator.execute("select count(*) from log.magnets_default where time < %s", [NOW])
        assert waiting.fetchone() == (0,)
