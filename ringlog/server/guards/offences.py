"""Logins whose sessions are ended because they harm all others: one that goes on is locked."""

import logging
import time
from collections import defaultdict, deque

import psycopg

from ringlog.errors import ServerError
from ringlog.server import logins

log = logging.getLogger(__name__)

_MOST = 3
"""offences within _FORGOTTEN, after which a login is locked"""
_FORGOTTEN = 60.0  # seconds


class Offences:
    """Counts the offences of logins."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._times: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_MOST))

    def add(self, login: str, what: str) -> None:
        """Counts an offence, and locks the login after too many. `what` says what its sessions did."""
        log.warning("sessions of %s were ended: they %s", login, what)
        times, now = self._times[login], time.monotonic()
        times.append(now)
        if len(times) < _MOST or now - times[0] > _FORGOTTEN:
            return
        times.clear()
        try:
            logins.lock(self._conninfo, login)
            log.error("login %s was locked: its sessions %s (ringlog user unlock %s)", login, what, login)
        except (ServerError, psycopg.Error) as error:
            log.error("login %s could not be locked: %s", login, error)
