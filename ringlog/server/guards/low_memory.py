"""A limit of the memory of all sessions together, for which PostgreSQL has none: for a crowd of sessions,
each within the limit of a process, the kernel would kill processes, and PostgreSQL restart.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import psutil
import psycopg

from ringlog.schema import session
from ringlog.server.embedded.settings import MiB, process_memory
from ringlog.server.guards import sessions

_LOOK = 0.5  # seconds between two looks
_ENDS = 10.0  # seconds in which a session ends
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
    ending: dict[tuple[int, datetime], float] = {}

    def look(connection: psycopg.Connection) -> None:
        nonlocal ending
        now = time.monotonic()
        ending = {key: until for key, until in ending.items() if until > now}
        # an ended session keeps memory until its process ends: no other has to end for it
        staying = [each for each in _sizes(connection) if (each.pid, each.began) not in ending]
        ended = surplus(staying, allowed(memory))
        sessions.end_all(connection, ended, "all together had too much memory")
        ending |= {(each.pid, each.began): now + _ENDS for each in ended}

    failure = "the memory of sessions could not be limited"
    with sessions.watched(connection, conninfo, "memory", _LOOK, look, failure):
        yield


def _sizes(connection: psycopg.Connection) -> Iterator[Session]:
    for each in sessions.sessions(connection):
        with suppress(psutil.Error):
            memory = psutil.Process(each.pid).memory_info()
            yield Session(**vars(each), size=memory.rss - memory.shared)


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
