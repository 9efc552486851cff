"""A limit of the memory of all sessions together, for which PostgreSQL has none: for a crowd of sessions,
each within the limit of a process, the kernel would kill processes, and PostgreSQL restart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil
import psycopg

from ringlog.schema import session
from ringlog.server.embedded.settings import MiB, process_memory
from ringlog.server.guards import sessions

_LOOK = 0.5  # seconds between two looks
_USUAL = 32 * MiB
"""of a session, which does not count"""


@dataclass(frozen=True)
class Session(sessions.Session):
    """A session, and the bytes of memory of its own."""

    size: int


def allowed(memory: int) -> int:
    """Bytes that all sessions together may have beyond the usual ones, of the `memory` that PostgreSQL plans
    with."""
    return max(memory // 2, process_memory(memory))


@contextmanager
def memory_limited(conninfo: str, memory: int) -> Iterator[None]:
    """Inside the with block sessions are ended when all together have too much memory: those of logins that
    may not write first, and of these the largest. Raises psycopg.Error."""
    connection = session.connect(conninfo, autocommit=True)

    def look(connection: psycopg.Connection) -> None:
        _end_largest(connection, allowed(memory))

    failure = "the memory of sessions could not be limited"
    with sessions.watched(connection, conninfo, "memory", _LOOK, look, failure):
        yield


def _end_largest(connection: psycopg.Connection, most: int) -> None:
    found = []
    for each in sessions.sessions(connection):
        with suppress(psutil.Error):
            memory = psutil.Process(each.pid).memory_info()
            found.append(Session(**vars(each), size=memory.rss - memory.shared))
    sessions.end_all(connection, surplus(found, most), "all together had too much memory")


def surplus(running: Sequence[Session], most: int) -> list[Session]:
    """The sessions to be ended until the others have `most` bytes beyond the usual ones."""
    large = sorted(
        (each for each in running if each.size > _USUAL), key=lambda each: (each.writes, -each.size)
    )
    total = sum(each.size - _USUAL for each in large)
    ended = []
    for each in large:
        if total <= most:
            break
        ended.append(each)
        total -= each.size - _USUAL
    return ended
