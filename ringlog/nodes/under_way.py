"""Moves of tables that were begun, and the lock under which one runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from psycopg import errors

from ringlog.errors import ServerError
from ringlog.nodes.servers import label
from ringlog.schema import locks
from ringlog.schema.moving import elsewhere
from ringlog.schema.moving.carrying import opened


@dataclass(frozen=True)
class Move:
    """A moving table; None is the first server."""

    table: str
    source: str | None
    target: str | None
    switched: bool

    def __str__(self) -> str:
        return f"{self.table} from {label(self.source)} to {label(self.target)}"


def moves_under_way(connection: sa.Connection) -> list[Move]:
    if not sa.inspect(connection).has_table(elsewhere.move.name, elsewhere.move.schema):
        return []
    query = sa.select(elsewhere.move).order_by(elsewhere.move.c.table_name)
    return [
        Move(row.table_name, row.source, row.target, row.switched is not None)
        for row in connection.execute(query)
    ]


@contextmanager
def no_other_move(conninfo: str) -> Iterator[None]:
    """Excludes other moves inside this. Raises ServerError while one runs."""
    with opened(conninfo) as connection, connection.transaction():
        # a killed move holds the lock for a moment
        connection.execute("set lock_timeout = '5s'")
        try:
            connection.execute(locks.statement(locks.MOVES))
        except errors.LockNotAvailable:
            raise ServerError(
                "another ringlog node move, or a ringlog backup, is running: wait until it ends"
            ) from None
        yield
