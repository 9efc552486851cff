"""PostgreSQL's table of locks is kept for writers.

All sessions share it, and no setting limits a session: any login can fill it, by advisory locks or temporary
tables, and then every put fails. It may be full when this looks at it: the query takes no lock of a shared
table, and sessions are ended by signals, which need none.
"""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString

import psycopg

from ringlog.schema import session
from ringlog.server.guards.offences import Offences
from ringlog.server.guards.sessions import watched

_LOOK = 0.25  # seconds between two looks
_RENEWED = 60.0
"""seconds after which the superusers are read again"""

_CAPACITY: LiteralString = """
    select current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int
"""
_SUPERUSERS: LiteralString = "select oid::int8 from pg_roles where rolsuper"
_NAMES: LiteralString = "select rolname from pg_roles where oid = any(%s::int8[]::oid[])"
# functions, and no tables
_LOCKS: LiteralString = """
    select l.pid, a.usesysid::int8, l.number
    from (select pid, count(*) as number from pg_lock_status() where pid is not null group by pid) as l
    join pg_stat_get_activity(null) as a using (pid)
    where a.usesysid is not null
    order by l.number desc
"""


@contextmanager
def locks_kept_for_writers(conninfo: str) -> Iterator[None]:
    """Inside the with block sessions of logins are ended, those with most locks first, while half of the
    table is in use. Raises psycopg.Error."""
    connection = session.connect(conninfo, autocommit=True)
    ((capacity,),) = connection.execute(_CAPACITY).fetchall()
    offences = Offences(conninfo)
    read, superusers, ended = 0.0, frozenset[int](), set[int]()

    def look(connection: psycopg.Connection) -> None:
        nonlocal read, superusers
        # while the table is full there would be no other connection
        with suppress(psycopg.errors.OutOfMemory):
            if superusers:
                ended.update(_end_largest(connection, int(capacity) // 2, superusers))
            # shared tables, when there is room for their locks again
            if time.monotonic() - read > _RENEWED:
                superusers = frozenset(oid for (oid,) in connection.execute(_SUPERUSERS))
                read = time.monotonic()
            if ended:
                names = connection.execute(_NAMES, [[*ended]]).fetchall()
                ended.clear()
                for (name,) in names:
                    offences.add(name, "took too many locks")

    with watched(connection, conninfo, "locks", _LOOK, look, "the table of locks could not be watched"):
        yield


def _end_largest(connection: psycopg.Connection, most: int, superusers: Collection[int]) -> set[int]:
    """Ends sessions of others than superusers until the rest has `most` locks. Returns their roles."""
    sessions = connection.execute(_LOCKS).fetchall()
    total = sum(number for _, _, number in sessions)
    ended = set()
    for pid, role, number in sessions:
        if total <= most:
            break
        if role not in superusers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            total -= number
            ended.add(int(role))
    return ended
