"""Locks that only ringlog_owner can take, to the end of a transaction: tables without rows.

Advisory locks have no owner: a login without any right could keep one. The lock of a table demands a right to
change it, which ringlog_owner's procedures have and no login. Those who write a log, take it over or give it
a partition lock the log itself, in modes for which readers do not wait.
"""

from dataclasses import dataclass

from psycopg import sql

from ringlog.schema.layout import LOG_TABLES


@dataclass(frozen=True)
class Lock:
    """A table of schema ringlog that is only locked."""

    name: str
    comment: str


CHANGES = Lock("one_change", "locked by what changes tables or procedures")
MAINTENANCE = Lock("one_maintenance", "locked by the maintenance of the logs")
SUMMARIES = Lock("one_summary", "locked by the process that makes summaries")
MOVES = Lock("one_move", "locked by the process that moves tables between servers")
CAPTURES = Lock("one_capture", "locked by what registers, copies or deletes captures")
LOCKS = (CHANGES, MAINTENANCE, SUMMARIES, MOVES, CAPTURES)


def statement(lock: Lock) -> sql.Composed:
    """Waits for the lock and takes it."""
    return sql.SQL("lock table {} in exclusive mode").format(sql.Identifier("ringlog", lock.name))


def wait_for_change(table: str) -> sql.Composed:
    """Waits for a running change of tables. Then no week loses its rows until the transaction ends.

    Long work on logs begins each transaction with this: a change waits for the lock here, where no writer
    waits behind it.
    """
    names = (sql.Identifier("ringlog", CHANGES.name), sql.Identifier(LOG_TABLES, table))
    return sql.SQL("lock table {} in share mode; lock table only {} in access share mode").format(*names)
