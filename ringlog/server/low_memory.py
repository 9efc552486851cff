"""A limit of the memory of all sessions together, for which PostgreSQL has none: for a crowd of sessions,
each within the limit of a process, the kernel would kill processes, and PostgreSQL restart.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psutil
import psycopg

from ringlog.schema import session
from ringlog.schema.layout import GATEWAY
from ringlog.server.background import in_background
from ringlog.server.direct import WRITERS
from ringlog.server.settings import MiB, process_memory

log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two looks
_USUAL = 32 * MiB
"""of a session, which does not count"""

_SESSIONS: LiteralString = """
    select a.pid, a.usename, a.backend_start,
      exists (
        select from pg_roles as w where w.rolname = any(%s) and pg_has_role(a.usesysid, w.oid, 'member'))
    from pg_stat_activity as a join pg_roles as r on r.oid = a.usesysid
    where a.backend_type = 'client backend' and not r.rolsuper and a.usename <> %s
"""
_END: LiteralString = """
    select pg_terminate_backend(pid) from pg_stat_activity where pid = %s and backend_start = %s
"""


@dataclass(frozen=True)
class Session:
    """A session, and the bytes of memory of its own."""

    pid: int
    login: str
    began: datetime
    writes: bool
    size: int


def allowed(memory: int) -> int:
    """Bytes that all sessions together may have beyond the usual ones, of the `memory` that PostgreSQL plans
    with."""
    return max(memory // 2, process_memory(memory))


@contextmanager
def memory_limited(conninfo: str, memory: int) -> Iterator[None]:
    """Inside the with block sessions are ended when all together have too much memory: those of logins that
    may not write first, and of these the largest. Raises psycopg.Error."""
    end = threading.Event()
    # kept: later there may be no memory for another one
    watching = session.connect(conninfo, autocommit=True)

    def watch() -> None:
        connection = watching
        while not end.wait(_LOOK):
            try:
                if connection.closed:
                    connection = session.connect(conninfo, autocommit=True)
                _end_largest(connection, allowed(memory))
            except psycopg.Error as error:
                if not connection.closed:
                    log.warning("the memory of sessions could not be limited: %s", error)
                connection.close()
        connection.close()

    with in_background("memory", watch, end):
        yield


def _end_largest(connection: psycopg.Connection, most: int) -> None:
    sessions = []
    for pid, login, began, writes in connection.execute(_SESSIONS, [[*WRITERS], GATEWAY]):
        with suppress(psutil.Error):
            memory = psutil.Process(pid).memory_info()
            sessions.append(Session(pid, login, began, writes, memory.rss - memory.shared))
    ended: Counter[str] = Counter()
    for each in surplus(sessions, most):
        ended[each.login] += connection.execute(_END, [each.pid, each.began]).rowcount
    for login in +ended:
        log.warning("%d sessions of %s were ended: all together had too much memory", ended[login], login)


def surplus(sessions: Sequence[Session], most: int) -> list[Session]:
    """The sessions to be ended until the others have `most` bytes beyond the usual ones."""
    large = sorted(
        (each for each in sessions if each.size > _USUAL), key=lambda each: (each.writes, -each.size)
    )
    total = sum(each.size - _USUAL for each in large)
    ended = []
    for each in large:
        if total <= most:
            break
        ended.append(each)
        total -= each.size - _USUAL
    return ended
