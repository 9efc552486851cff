"""Connections of readers, kept for some time for the next request."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from adbc_driver_manager import Error
from psycopg.conninfo import conninfo_to_dict

from ringlog.history.connection import Connection, ReadError, connect
from ringlog.history.priority import lower_process
from ringlog.retrieval.serving.access import Login
from ringlog.retrieval.serving.refused import refused

_IDLE = 60.0  # seconds
_KEPT = 32  # idle connections
_NICENESS = 10  # nice value of PostgreSQL's processes that serve readers
_VERSION = "select version from ringlog.registry_state"
_LOGINS = 100  # logins whose registries are kept
_ENTRIES = 50_000  # of each


class Connections:
    """Idle connections by login. Threads take one each.

    A login uses them for `trusted` seconds after PostgreSQL has accepted its password; then it logs in again.
    """

    def __init__(self, trusted: float = 10.0) -> None:
        self._trusted = trusted
        self._accepted: dict[Login, float] = {}
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Login, Connection]] = []
        self._registries: dict[Login, tuple[bytes | None, dict[Any, Any]]] = {}

    @contextmanager
    def borrowed(self, login: Login, *, sure: bool = False) -> Iterator[Connection]:
        """A connection of this login. It is kept for another request unless this one fails. `sure`: a kept
        connection is tested first. Raises ReadError.
        """
        connection = self._take(login, sure)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._give(login, connection)

    def _take(self, login: Login, sure: bool) -> Connection:
        now = time.monotonic()
        if now - self._accepted.get(login, -self._trusted) < self._trusted:
            while (kept := self._kept(login)) is not None:
                if not sure:
                    return kept
                try:
                    kept.answer("select")
                    return kept
                except ReadError:
                    kept.close()
        try:
            connection = connect(login.conninfo, _lower_priority if _is_near(login) else lambda pid: None)
        except ReadError as error:
            if refused(error).status == 401:
                while (kept := self._kept(login)) is not None:
                    kept.close()
            raise
        if (kept := self._kept(login)) is not None:
            # the new one replaces it
            kept.close()
        with self._lock:
            self._accepted = {
                known: when for known, when in self._accepted.items() if now - when < self._trusted
            } | {login: now}
        return connection

    def registry(self, login: Login, connection: Connection) -> dict[Any, Any]:
        """The cached registry of a server, as this login reads it: empty after a change of the registry.
        Raises ReadError."""
        version = connection.answer(_VERSION).get_value(0, 0)
        with self._lock:
            before, kept = self._registries.get(login, (None, {}))
            if before != version or len(kept) > _ENTRIES:
                kept = {"version": version}
                self._registries.pop(login, None)
                while len(self._registries) >= _LOGINS:
                    del self._registries[next(iter(self._registries))]
                self._registries[login] = version, kept
        return kept

    def _kept(self, login: Login) -> Connection | None:
        with self._lock:
            for index, (_, owner, connection) in reversed(list(enumerate(self._idle))):
                if owner == login:
                    del self._idle[index]
                    return connection
        return None

    def _give(self, login: Login, connection: Connection) -> None:
        with suppress(Error):
            connection.rollback()
        with self._lock:
            self._idle.append((time.monotonic(), login, connection))
        self.close_old()

    def close_old(self) -> None:
        """Closes connections that are idle for a minute, and the oldest of too many."""
        oldest = time.monotonic() - _IDLE
        with self._lock:
            kept = [entry for entry in self._idle[-_KEPT:] if entry[0] >= oldest]
            old = self._idle[: len(self._idle) - len(kept)]
            self._idle = kept
        _close(old)

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)


def _close(idle: Iterable[tuple[float, Login, Connection]]) -> None:
    for _, _, connection in idle:
        connection.close()


def _is_near(login: Login) -> bool:
    """Whether PostgreSQL runs on this machine."""
    host = str(conninfo_to_dict(login.conninfo).get("host") or "")
    return host in ("127.0.0.1", "::1", "localhost") or host.startswith("/")


def _lower_priority(pid: int) -> None:
    """Lowers the priority of readers' backends, if PostgreSQL runs under the account of this process."""
    with suppress(OSError):
        lower_process(pid, _NICENESS)
