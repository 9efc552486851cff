"""Sessions of logins, which are watched, and ended when they harm others."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psycopg

from ringlog.schema import session
from ringlog.schema.layout import GATEWAY, PARAMETER_WRITER, TABLE_WRITER, WRITER
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

WRITERS = (WRITER, TABLE_WRITER, PARAMETER_WRITER)

OF_LOGINS: LiteralString = """
    from pg_stat_activity as a join pg_roles as r on r.oid = a.usesysid
    where a.backend_type = 'client backend' and not r.rolsuper and a.usename <> %s
"""
"""End of a query of the sessions `a` of all logins; its parameter is the gateway's role."""

WRITES: LiteralString = """
    exists (select from pg_roles as w where w.rolname = any(%s) and pg_has_role(a.usesysid, w.oid, 'member'))
"""
"""Whether the login of `a` may write; its parameter is WRITERS."""

_SESSIONS: LiteralString = f"select a.pid, a.usename, a.backend_start, {WRITES} {OF_LOGINS}"
_END: LiteralString = """
    select pg_terminate_backend(pid) from pg_stat_activity where pid = %s and backend_start = %s
"""


@dataclass(frozen=True)
class Session:
    pid: int
    login: str
    began: datetime
    writes: bool


def sessions(connection: psycopg.Connection) -> list[Session]:
    return [Session(*row) for row in connection.execute(_SESSIONS, [[*WRITERS], GATEWAY])]


def end(connection: psycopg.Connection, pid: int, began: datetime) -> int:
    """Ends the session with this process, if it began then. Returns how many were ended."""
    return connection.execute(_END, [pid, began]).rowcount


def end_all(connection: psycopg.Connection, harmful: Iterable[Session], why: str) -> None:
    """Ends sessions, and logs how many of each login."""
    ended: Counter[str] = Counter()
    for each in harmful:
        ended[each.login] += end(connection, each.pid, each.began)
    for login in +ended:
        log.warning("%d sessions of %s were ended: %s", ended[login], login, why)


@contextmanager
def watched(
    connection: psycopg.Connection,
    conninfo: str,
    name: str,
    pause: float,
    look: Callable[[psycopg.Connection], None],
    failure: str,
) -> Iterator[None]:
    """Inside the with block a thread calls `look` every `pause` seconds. It keeps the connection, because
    later there may be no other one, and makes a new one after an error; `failure` begins the error's line."""
    ended = threading.Event()

    def watch() -> None:
        kept = connection
        while not ended.wait(pause):
            try:
                if kept.closed:
                    kept = session.connect(conninfo, autocommit=True)
                look(kept)
            except psycopg.Error as error:
                if not kept.closed:
                    log.warning("%s: %s", failure, error)
                kept.close()
        kept.close()

    with in_background(name, watch, ended):
        yield
