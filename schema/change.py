"""Changes of the database while writers and readers run.

One change runs at a time. It never waits long for a lock, because every later statement would wait behind it:
it gives up, lets the others through and begins again.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema import locks
from ringlog.schema.session import AnyConnection, begun, driver
from ringlog.schema.sql_files import sql_file

T = TypeVar("T")

CHANNEL = "ringlog_catalogue"
"""Notified with every change of tables or procedures: the gateway reads the catalogue again."""
MOVED = "moved"
"""Its payload when only the servers of tables have changed: the gateway keeps its connections."""

PATIENCE = 20.0
"""Seconds after which a change that waits for locks is given up."""

# Writers wait behind a change that waits. It is below deadlock_timeout (1 s), so that in a deadlock it is the
# change that gives way.
_LOCK_TIMEOUT = "60ms"
_PAUSE = 0.1  # seconds after the first attempt; the pauses grow
_LONGEST_PAUSE = 2.0
_UNKNOWN = 5.0  # further seconds to find the blocking sessions
_LOOK = 0.01  # seconds between two looks for them

_BLOCKERS = sql_file(__file__, "change_blockers").encode()


ERRORS = (psycopg.Error, sa.exc.DBAPIError)
"""of PostgreSQL, by a connection of either kind"""


class Blocked(errors.LockNotAvailable):
    """Other sessions held a lock all the time; the text names them, and how to end them."""


def change(database: str | sa.Engine, work: Callable[[Any], T]) -> T:
    """Runs `work` in one transaction, from the start again if a lock is not free. Its connection is psycopg's
    for a connection string.

    Raises psycopg.Error or sqlalchemy.exc.DBAPIError; `is_lock_conflict` returns whether a lock was not free
    in time. The error, or its cause, is then Blocked, if the sessions that had the lock are known.
    """
    end = time.monotonic() + PATIENCE
    pause = _PAUSE
    while True:
        is_last = time.monotonic() > end
        blockers: dict[int, str] = {}
        try:
            with begun(database) as connection:
                _exclude_others(driver(connection))
                # the text of a function's definition depends on the search path: always the same one
                settings = f"set local lock_timeout = '{_LOCK_TIMEOUT}'; set local search_path = pg_catalog"
                run(connection, settings)
                with _noted(database, driver(connection), blockers) if is_last else nullcontext():
                    return work(connection)
        except ERRORS as error:
            if not is_lock_conflict(error):
                raise
            if blockers:
                raise Blocked(_advice(blockers)) from error
            # an attempt may be too short to find them
            if time.monotonic() > end + _UNKNOWN:
                raise
        time.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_PAUSE)


def _exclude_others(connection: psycopg.Connection) -> None:
    lock = f"ringlog.{locks.CHANGES.name}"
    if connection.execute("select where to_regclass(%s) is not null", [lock]).rowcount:
        connection.execute(locks.statement(locks.CHANGES))
    else:
        # the first installation: no login exists that could hold this lock
        connection.execute("select pg_advisory_xact_lock(hashtext('ringlog'))")


@contextmanager
def _noted(
    database: str | sa.Engine, waiting: psycopg.Connection, blockers: dict[int, str]
) -> Iterator[None]:
    """Collects the processes that block `waiting` inside the with block."""
    pid = waiting.info.backend_pid
    end = threading.Event()

    def look() -> None:
        while not end.wait(_LOOK):
            for table, blocker, *session in driver(looking).execute(_BLOCKERS, {"pid": pid}):
                login, host, program, since, state = session
                blockers[blocker] = (
                    f"{table} is used by process {blocker}: login {login}, from {host}, program"
                    f" {program!r}, {state}, in a transaction since {since}"
                )
            driver(looking).rollback()

    with begun(database) as looking:
        thread = threading.Thread(target=look, name="blockers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


def _advice(blockers: dict[int, str]) -> str:
    ends = "; ".join(f"select pg_terminate_backend({pid})" for pid in blockers)
    return (
        f"nothing was changed, since a lock was not free for {PATIENCE:.0f} s:"
        f" {'. '.join(blockers.values())}."
        f" End these transactions, or the sessions as the administrator (ringlog dsn): {ends}"
    )


def tried(database: str | sa.Engine, work: Callable[[Any], T]) -> T | None:
    """Makes a change; None: a lock was not free in time."""
    try:
        return change(database, work)
    except ERRORS as error:
        if not is_lock_conflict(error):
            raise
        return None


def announce(connection: AnyConnection, what: str = "") -> None:
    """Notifies the gateway, when the transaction commits, that tables or procedures have changed."""
    run(connection, sql.SQL("notify {}, {}").format(sql.Identifier(CHANNEL), sql.Literal(what)))


def cause_of(error: Exception) -> Exception:
    """The driver's error, which SQLAlchemy's has inside."""
    return getattr(error, "orig", error)


def is_lock_conflict(error: Exception) -> bool:
    return isinstance(cause_of(error), errors.LockNotAvailable | errors.DeadlockDetected)


def run(connection: AnyConnection, statements: sql.Composable | str) -> int:
    """Runs one or more statements without parameters. Returns the number of rows."""
    text = statements if isinstance(statements, str) else statements.as_string()
    return driver(connection).execute(text.encode()).rowcount


def run_all(connection: AnyConnection, statements: Iterable[sql.Composable | str]) -> None:
    """Runs statements without parameters in one round trip."""
    texts = [each if isinstance(each, str) else each.as_string() for each in statements]
    if texts:
        # a text may end in a comment
        run(connection, "\n;\n".join(texts))
