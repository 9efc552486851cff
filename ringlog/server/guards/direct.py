"""Limits of connections directly to PostgreSQL: a crowd of them must leave connections for writers.

A role's own limit (CONNECTION LIMIT) would also count the connections that the gateway opens in its name, and
each login can change its settings, such as idle_session_timeout. Here connections of ringlog's processes are
recognised by their sockets, which no client can pretend to have.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psutil
import psycopg
from psycopg import sql

from ringlog.schema import session
from ringlog.schema.layout import GATEWAY
from ringlog.server.guards import sessions
from ringlog.server.guards.sessions import OF_LOGINS, WRITERS, WRITES

log = logging.getLogger(__name__)

_LOOK = 1.0  # seconds between two looks

_CONNECTIONS: LiteralString = f"""
    select a.pid, a.usename, a.backend_start, host(a.client_addr), a.client_port,
      case when a.state = 'idle' then a.state_change end, {WRITES}
    {OF_LOGINS}
"""
# a process that authenticates a login has a transaction, and no login yet
_BEGINNING: LiteralString = """
    select l.pid from pg_locks as l left join pg_stat_activity as a using (pid)
    where l.locktype = 'virtualxid' and l.pid is not null and a.usesysid is null
      and coalesce(a.backend_type, 'client backend') = 'client backend'
"""
_QUEUE_USAGE = 0.005
"""of 8 GiB: once the queue is full, no NOTIFY can wake the listeners that would empty it"""
_IN_TRANSACTION: LiteralString = f"""
    select a.pid, a.backend_start, a.usename, host(a.client_addr), a.client_port
    {OF_LOGINS} and a.xact_start is not null
    order by a.xact_start
"""


@dataclass(frozen=True)
class Limits:
    """The most connections directly to PostgreSQL."""

    of_reader: int
    """of a login that may not write"""
    of_readers: int
    """of all such logins together"""
    of_writer: int
    """of a login that may write"""
    of_all: int
    """of all logins, those of ringlog's processes included, before readers get fewer"""
    unknown: int
    """that have not logged in yet"""

    @classmethod
    def of(cls, most: int) -> "Limits":
        """For a PostgreSQL with `most` connections."""
        return cls(most // 8, most // 4, most // 2, most - most // 6, most // 8)


@dataclass(frozen=True)
class Direct:
    pid: int
    login: str
    began: datetime
    address: str | None
    port: int | None
    idle_since: datetime | None
    """None: it is in a transaction"""
    writes: bool


@contextmanager
def direct_connections_limited(conninfo: str, processes: Callable[[], Collection[int]]) -> Iterator[None]:
    """Inside the with block connections beyond the limits are ended: first those that are idle for longest,
    then the youngest. `processes` gives ringlog's own, which have limits of their own.

    Writers and the gateway become members of pg_use_reserved_connections, which PostgreSQL has from 16 on.
    Raises psycopg.Error.
    """
    connection = session.connect(conninfo, autocommit=True)
    if connection.info.server_version >= 160_000:
        _reserve(connection)
    unknown = frozenset[int]()

    def look(connection: psycopg.Connection) -> None:
        nonlocal unknown
        unknown = _end_unknown(connection, unknown)
        own = processes()
        _end_surplus(connection, own)
        _end_slow_listener(connection, own)

    failure = "the connections of logins could not be counted"
    with sessions.watched(connection, conninfo, "direct connections", _LOOK, look, failure):
        yield


def _reserve(connection: psycopg.Connection) -> None:
    """Lets writers and the gateway use the reserved connections."""
    for role in (*WRITERS, GATEWAY):
        # the gateway's role inherits nothing by default
        statement = sql.SQL("grant pg_use_reserved_connections to {} with inherit true, set false")
        with suppress(psycopg.errors.UndefinedObject):
            connection.execute(statement.format(sql.Identifier(role)))


def _end_unknown(connection: psycopg.Connection, before: Collection[int]) -> frozenset[int]:
    """Ends connections that have not logged in since the last look, if there are many; `before` are those of
    that look. Returns those of this one."""
    unknown = frozenset(pid for (pid,) in connection.execute(_BEGINNING))
    if len(unknown) <= Limits.of(_most(connection)).unknown:
        return unknown
    silent = [*unknown.intersection(before)]
    connection.execute("select pg_terminate_backend(pid) from unnest(%s::int[]) as pid", [silent])
    if silent:
        log.warning("%d connections to PostgreSQL that did not log in were ended", len(silent))
    return unknown


def _end_surplus(connection: psycopg.Connection, processes: Collection[int]) -> None:
    found = [Direct(*row) for row in connection.execute(_CONNECTIONS, [[*WRITERS], GATEWAY])]
    limits = Limits.of(_most(connection))
    if not surplus(found, len(found), limits):
        return
    # after the connections were listed, so that a new one of ringlog's is not taken for another's
    own = _sockets(processes)
    others = [each for each in found if (each.address, each.port) not in own]
    ended = surplus(others, len(found), limits)
    for each in ended:
        sessions.end(connection, each.pid, each.began)
    for login, number in Counter(each.login for each in ended).items():
        log.warning("%d connections of %s to PostgreSQL were ended: it has too many", number, login)


def _end_slow_listener(connection: psycopg.Connection, processes: Collection[int]) -> None:
    """Ends the connection with the oldest transaction when the queue of notifications fills: a listener reads
    it between its transactions, and everybody's NOTIFY fails when it is full."""
    ((usage,),) = connection.execute("select pg_notification_queue_usage()").fetchall()
    if usage < _QUEUE_USAGE:
        return
    found = connection.execute(_IN_TRANSACTION, [GATEWAY]).fetchall()
    own = _sockets(processes)
    for pid, began, login, address, port in found:
        if (address, port) not in own:
            sessions.end(connection, pid, began)
            log.warning(
                "a connection of %s was ended: it kept the queue of notifications from shrinking", login
            )
            return


def _most(connection: psycopg.Connection) -> int:
    ((most,),) = connection.execute("select current_setting('max_connections')::int").fetchall()
    return int(most)


def _sockets(processes: Collection[int]) -> set[tuple[str | None, int | None]]:
    """Addresses and ports of these processes."""
    found: set[tuple[str | None, int | None]] = set()
    for process in processes:
        with suppress(psutil.Error):
            connections = psutil.Process(process).net_connections("tcp")
            found.update((each.laddr.ip, each.laddr.port) for each in connections if each.raddr)
    return found


def surplus(direct: list[Direct], total: int, limits: Limits) -> list[Direct]:
    """The connections to be ended, of `direct` ones; `total` counts others too."""
    ended: list[Direct] = []

    def end(some: list[Direct], most: int) -> list[Direct]:
        """The rest: those in use, the oldest first, then those that were used last."""
        kept = sorted((each for each in some if each.idle_since is None), key=lambda each: each.began)
        idle = [(each.idle_since, each) for each in some if each.idle_since is not None]
        kept += [each for _, each in sorted(idle, key=lambda pair: pair[0], reverse=True)]
        ended.extend(kept[max(most, 0) :])
        return kept[: max(most, 0)]

    readers: list[Direct] = []
    for login in sorted({each.login for each in direct}):
        some = [each for each in direct if each.login == login]
        if some[0].writes:
            end(some, limits.of_writer)
        else:
            readers += end(some, limits.of_reader)
    excess = total - len(ended) - limits.of_all
    end(readers, min(limits.of_readers, len(readers) - max(excess, 0)))
    return ended
