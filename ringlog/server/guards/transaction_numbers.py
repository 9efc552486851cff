"""Transaction numbers are kept for writers.

PostgreSQL has two billion before old rows must be frozen, and refuses all writes when it runs out of them.
Any login can use up 100,000 in a second (`select pg_current_xact_id()` in a loop), and a transaction that
stays open keeps rows from being frozen or removed.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import LiteralString

import psycopg

from ringlog.schema import session
from ringlog.schema.layout import GATEWAY
from ringlog.server.guards import sessions
from ringlog.server.guards.offences import Offences
from ringlog.server.guards.sessions import OF_LOGINS

log = logging.getLogger(__name__)

MOST = 30_000
"""transactions in a second; puts make at most half of it, on any machine that was measured"""
LONGEST = timedelta(days=1)
"""of a login's transaction"""
_LOOK = 1.0  # seconds between two looks
_SAMPLES = 10
_BETWEEN = 0.01  # seconds between two samples
_DISTINCT = 3
"""numbers of one session in these samples"""

_NEXT: LiteralString = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_NUMBERS: LiteralString = f"""
    select a.pid, a.usename, a.backend_start, a.backend_xid::text {OF_LOGINS} and a.backend_xid is not null
"""
_OLD: LiteralString = f"""
    select a.usename, pg_terminate_backend(a.pid) {OF_LOGINS} and a.xact_start < now() - %s
"""


@contextmanager
def transaction_numbers_kept(conninfo: str) -> Iterator[None]:
    """Inside the with block sessions that use up transaction numbers are ended, as `Offences` says, and those
    of logins whose transaction is older than LONGEST. Raises psycopg.Error."""
    offences = Offences(conninfo)
    last: tuple[psycopg.Connection | None, float, int] = None, 0.0, 0

    def look(connection: psycopg.Connection) -> None:
        nonlocal last
        end_old(connection, LONGEST)
        before, last = last, (connection, time.monotonic(), _next(connection))
        same, seconds, used = before[0] is connection, last[1] - before[1], last[2] - before[2]
        if same and used > MOST * seconds:
            for login in _end_greedy(connection):
                offences.add(login, "used up transaction numbers")

    failure = "transaction numbers could not be watched"
    connection = session.connect(conninfo, autocommit=True)
    with sessions.watched(connection, conninfo, "transaction numbers", _LOOK, look, failure):
        yield


def end_old(connection: psycopg.Connection, longest: timedelta) -> None:
    """Ends sessions of logins whose transaction has lasted longer."""
    for login, _ in connection.execute(_OLD, [GATEWAY, longest]).fetchall():
        log.warning("a session of %s was ended: its transaction had lasted longer than %s", login, longest)


def _next(connection: psycopg.Connection) -> int:
    ((number,),) = connection.execute(_NEXT).fetchall()
    return int(number)


def _end_greedy(connection: psycopg.Connection) -> set[str]:
    """Ends the sessions that have several numbers within a moment. Returns their logins."""
    numbers: dict[tuple[int, str, datetime], set[str]] = defaultdict(set)
    for _ in range(_SAMPLES):
        for pid, login, began, number in connection.execute(_NUMBERS, [GATEWAY]):
            numbers[pid, login, began].add(number)
        time.sleep(_BETWEEN)
    greedy = [key for key, different in numbers.items() if len(different) >= _DISTINCT]
    for pid, _, began in greedy:
        sessions.end(connection, pid, began)
    return {login for _, login, _ in greedy}
