"""Lowers the priority of background work below everything else on the machine."""

import os
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    import psycopg

    # the package of an extra, which the server does not require
    from adbc_driver_manager.dbapi import Connection

LOWEST = 19
"""The nice value of the lowest priority."""
_TOLERANCE = 2.0  # seconds between a process's start as the system has it, in ticks, and as PostgreSQL has it


def lower_thread() -> None:
    """Lowers the priority of the calling thread for good: on Linux each thread has its own."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)


def lower_backend(connection: "Connection | psycopg.Connection[Any]", niceness: int = LOWEST) -> None:
    """Lowers the priority of the process that serves a connection, if it is known to be on this machine and
    may be changed."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(
            "select pid, extract(epoch from backend_start)::float8 from pg_stat_activity"
            " where pid = pg_backend_pid() and inet_server_addr() is null"
        )
        found = cursor.fetchone()
    connection.rollback()
    if found is None:
        return
    pid, begun = found
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        # behind a socket may be another machine's PostgreSQL, whose number belongs to another process here
        if process.name() == "postgres" and abs(process.create_time() - begun) < _TOLERANCE:
            lower_process(pid, niceness)


def lower_process(pid: int, niceness: int) -> None:
    """Lowers the priority of a process of this machine that is a session of its own, as each of PostgreSQL's.

    Raises OSError without the right to do so.
    """
    os.setpriority(os.PRIO_PROCESS, pid, niceness)
    # in a kernel with autogroups the nice value of the session counts
    Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
