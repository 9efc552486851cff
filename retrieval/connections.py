"""Connections of readers, kept for some time for their next request."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from adbc_driver_manager import Error
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ringlog.history.connection import Connection, ReadError, connect, rows, run
from ringlog.history.priority import lower_process
from ringlog.retrieval.access import Login

_IDLE = 60.0  # seconds; so long a login taken away may still be served
_KEPT = 32  # idle connections
_NICENESS = 10  # of the processes of PostgreSQL that serve readers


class Connections:
    """Idle connections by login. Threads take one each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Login, Connection]] = []

    @contextmanager
    def taken(self, login: Login, *, sure: bool = False) -> Iterator[Connection]:
        """A connection of this login. It is kept for another request unless this one fails. `sure`: one that
        was kept is tried first. Raises ReadError.
        """
        connection = self._take(login, sure)
        try:
            yield connection
        except BaseException:
            _close(connection)
            raise
        self._give(login, connection)

    def _take(self, login: Login, sure: bool) -> Connection:
        while (kept := self._kept(login)) is not None:
            if not sure:
                return kept
            try:
                run(kept, sql.SQL("select"))
                return kept
            except ReadError:
                _close(kept)
        connection = connect(login.conninfo)
        _lower_priority(connection, login)
        return connection

    def _kept(self, login: Login) -> Connection | None:
        with self._lock:
            for place, (_, owner, connection) in reversed(list(enumerate(self._idle))):
                if owner == login:
                    del self._idle[place]
                    return connection
        return None

    def _give(self, login: Login, connection: Connection) -> None:
        with suppress(Error):
            connection.rollback()
        now = time.monotonic()
        with self._lock:
            self._idle.append((now, login, connection))
            oldest = now - _IDLE
            drop = list(self._idle[:-_KEPT])
            drop += [entry for entry in self._idle[-_KEPT:] if entry[0] < oldest]
            self._idle = [entry for entry in self._idle if entry not in drop]
        for _, _, old in drop:
            _close(old)

    def close(self) -> None:
        """Closes what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, _, connection in idle:
            _close(connection)


def _close(connection: Connection) -> None:
    # one whose result is still being read ends with it
    with suppress(Error, OSError, RuntimeError):
        connection.close()


def _lower_priority(connection: Connection, login: Login) -> None:
    """Lets writers go first, where PostgreSQL runs on this machine under the account of this process."""
    host = str(conninfo_to_dict(login.conninfo).get("host") or "")
    if host not in ("127.0.0.1", "::1", "localhost") and not host.startswith("/"):
        return
    batches = [*rows(connection, sql.SQL("select pg_backend_pid() as pid"))]
    pids = batches[0].column(0).to_pylist()
    with suppress(OSError):
        lower_process(pids[0], _NICENESS)
