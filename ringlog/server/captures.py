"""Captures: each second rules register events and rows are copied; none while the disk is nearly full."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.server.guards.disk import Disk
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

_PAUSE = 1.0
"""seconds between two looks; a ring must hold ten of them (demand_capturable.sql)"""

_NOTICE = b"select * from ringlog.notice_alarms(now() - make_interval(secs => %s))"
_LATE = 10.0
"""seconds by which a row may come late and still be seen by the rules"""
_DOWN = 60.0
"""seconds before the begin at which they look, as after a restart"""


@contextmanager
def captures_copied(conninfo: str, data: Path | None) -> Iterator[None]:
    """Copies the rows of captures in a thread until the end. `data` is the folder of an embedded PostgreSQL:
    while its disk is nearly full, no event is registered."""
    end = threading.Event()

    def copy() -> None:
        failed = False
        reason: str | None = ""  # not known yet
        looked = time.monotonic() - _DOWN
        while not end.wait(_PAUSE):
            try:
                with session.connect(conninfo, autocommit=True) as connection:
                    connection.execute(f"set role {OWNER}".encode())
                    while not end.wait(_PAUSE):
                        reason = _refuse_if_full(connection, data, reason)
                        since, looked = time.monotonic() - looked + _LATE, time.monotonic()
                        for (line,) in connection.execute(_NOTICE, [since]):
                            log.warning("%s", line)
                        while not end.is_set() and connection.execute(
                            "select ringlog.copy_captures()"
                        ).fetchone() == (True,):
                            pass
                        failed = False
            except psycopg.Error:
                if not failed:  # once is enough while the reason lasts
                    log.exception("the rows of captures were not copied; the next attempt is in a second")
                failed = True

    with in_background("captures", copy, end):
        try:
            yield
        finally:
            end.set()


def _refuse_if_full(connection: psycopg.Connection, data: Path | None, before: str | None) -> str | None:
    """Records why captures are refused, when that has changed. Returns the reason; None: they are not."""
    disk = None if data is None else Disk.beneath(data)
    if disk is None or not disk.is_nearly_full:
        if before is not None:
            connection.execute("delete from ringlog.capture_refused")
        return None
    if not before:
        connection.execute(
            "insert into ringlog.capture_refused (reason) values (%s) on conflict (one) do nothing",
            [f"the disk is nearly full: {disk}"],
        )
    return str(disk)
