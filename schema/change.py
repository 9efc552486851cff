"""Changes of the database while writers and readers run.

One change runs at a time. It never waits long for a lock, because every later statement would wait behind it:
it gives up, lets the others through and begins again.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar, cast

import psycopg
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema import locks
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

_BLOCKERS = sa.text(sql_file(__file__, "change_blockers"))


class Blocked(errors.LockNotAvailable):
    """Other sessions held a lock all the time; the text names them, and how to end them."""


def change(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
    """Runs `work` in one transaction, from the start again if a lock is not free.

    Raises sqlalchemy.exc.DBAPIError; `is_lock_conflict` returns whether a lock was not free in time. Its
    cause is then Blocked, if the sessions that had the lock are known.
    """
    end = time.monotonic() + PATIENCE
    pause = _PAUSE
    while True:
        is_last = time.monotonic() > end
        blockers: dict[int, str] = {}
        try:
            with engine.begin() as connection:
                _exclude_others(connection)
                connection.execute(sa.select(sa.func.set_config("lock_timeout", _LOCK_TIMEOUT, True)))
                # the text of a function's definition depends on the search path: always the same one
                connection.execute(sa.select(sa.func.set_config("search_path", "pg_catalog", True)))
                with _noted(engine, connection, blockers) if is_last else nullcontext():
                    return work(connection)
        except sa.exc.DBAPIError as error:
            if not is_lock_conflict(error):
                raise
            if blockers:
                error.orig = Blocked(_advice(blockers))
            # an attempt may be too short to find them
            if blockers or time.monotonic() > end + _UNKNOWN:
                raise
        time.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_PAUSE)


def _exclude_others(connection: sa.Connection) -> None:
    if connection.scalar(sa.select(sa.func.to_regclass(f"ringlog.{locks.CHANGES.name}"))) is not None:
        run(connection, locks.statement(locks.CHANGES))
    else:
        # the first installation: no login exists that could hold this lock
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext("ringlog"))))


@contextmanager
def _noted(engine: sa.Engine, waiting: sa.Connection, blockers: dict[int, str]) -> Iterator[None]:
    """Collects the processes that block `waiting` inside the with block."""
    pid = waiting.execute(sa.select(sa.func.pg_backend_pid())).scalar_one()
    end = threading.Event()

    def look() -> None:
        while not end.wait(_LOOK):
            for table, blocker, *session in looking.execute(_BLOCKERS, {"pid": pid}):
                login, host, program, since, state = session
                blockers[blocker] = (
                    f"{table} is used by process {blocker}: login {login}, from {host}, program"
                    f" {program!r}, {state}, in a transaction since {since}"
                )
            looking.rollback()

    with engine.connect() as looking:
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


def tried(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T | None:
    """Makes a change; None: a lock was not free in time."""
    try:
        return change(engine, work)
    except sa.exc.DBAPIError as error:
        if not is_lock_conflict(error):
            raise
        return None


def announce(connection: sa.Connection, what: str = "") -> None:
    """Notifies the gateway, when the transaction commits, that tables or procedures have changed."""
    run(connection, sql.SQL("notify {}, {}").format(sql.Identifier(CHANNEL), sql.Literal(what)))


def is_lock_conflict(error: sa.exc.DBAPIError) -> bool:
    return isinstance(error.orig, errors.LockNotAvailable | errors.DeadlockDetected)


def run(connection: sa.Connection, statements: sql.Composable | str) -> int:
    """Runs one or more statements without parameters. Returns the number of rows."""
    text = statements if isinstance(statements, str) else statements.as_string()
    return connection.exec_driver_sql(text, execution_options={"no_parameters": True}).rowcount


def run_all(connection: sa.Connection, statements: Iterable[sql.Composable | str]) -> None:
    """Runs statements without parameters in one round trip."""
    texts = [each if isinstance(each, str) else each.as_string() for each in statements]
    if texts:
        # a text may end in a comment
        run(connection, "\n;\n".join(texts))


def driver(connection: sa.Connection) -> psycopg.Connection:
    """The driver's connection, in the same transaction."""
    return cast(psycopg.Connection, connection.connection.dbapi_connection)
