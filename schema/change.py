"""Changes of the database beside running writers and readers.

One change runs at a time. It never waits long for a lock, since every later statement would wait behind it:
it gives up, lets the others through and begins again.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema import locks

T = TypeVar("T")

CHANNEL = "ringlog_catalogue"
"""Notified with every change of tables or procedures: the gateway reads the catalogue anew."""
MOVED = "moved"
"""Said there when only the servers that tables are on have changed: the gateway keeps its connections."""

PATIENCE = 20.0
"""Seconds after which a change that meets with locks is given up."""

# Writers wait behind a change that waits. It is below deadlock_timeout (1 s), so that in a deadlock it is the
# change that gives way.
_LOCK_TIMEOUT = "60ms"
_PAUSE = 0.1  # seconds after the first attempt; the pauses grow
_LONGEST_PAUSE = 2.0


def change(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
    """Runs `work` in one transaction, from the start again when it meets with a lock.

    Raises sqlalchemy.exc.DBAPIError; `is_lock_conflict` returns whether a lock was not free in time.
    """
    end = time.monotonic() + PATIENCE
    pause = _PAUSE
    while True:
        try:
            with engine.begin() as connection:
                _become_the_only_one(connection)
                connection.execute(sa.select(sa.func.set_config("lock_timeout", _LOCK_TIMEOUT, True)))
                # what PostgreSQL shows of a function depends on the search path: always the same one
                connection.execute(sa.select(sa.func.set_config("search_path", "pg_catalog", True)))
                return work(connection)
        except sa.exc.DBAPIError as error:
            if not is_lock_conflict(error) or time.monotonic() > end:
                raise
        time.sleep(pause)
        pause = min(1.3 * pause, _LONGEST_PAUSE)


def _become_the_only_one(connection: sa.Connection) -> None:
    if connection.scalar(sa.select(sa.func.to_regclass(locks.CHANGES.fullname))) is not None:
        run(connection, locks.statement(locks.CHANGES))
    else:
        # the first installation: no login is there that could keep it
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext("ringlog"))))


def tried(engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T | None:
    """Makes a change; None when it met with locks for too long."""
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
    """Runs one or more statements that have their values in them. The answer is the number of rows."""
    text = statements if isinstance(statements, str) else statements.as_string()
    return connection.exec_driver_sql(text, execution_options={"no_parameters": True}).rowcount
