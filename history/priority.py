"""Lowers the priority of background work below everything else on the machine."""

import os
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    import psycopg

    # of an extra, which the server does without
    from adbc_driver_manager.dbapi import Connection

LOWEST = 19
"""Of `nice`."""
_APART = 2.0  # seconds between a process's start, which the system counts in ticks, and PostgreSQL's word


def lower_thread() -> None:
    """Lowers the calling thread for good: Linux gives each its own priority."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)


def lower_backend(connection: "Connection | psycopg.Connection[Any]", niceness: int = LOWEST) -> None:
    """Lowers the process that serves a connection, where it is known to be on this machine and may be."""
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
        # another machine's PostgreSQL behind a socket would have another's number
        if process.name() == "postgres" and abs(process.create_time() - begun) < _APART:
            lower_process(pid, niceness)


def lower_process(pid: int, niceness: int) -> None:
    """Lowers a process of this machine that is a session of its own, as each of PostgreSQL's is.

    Raises OSError where that may not be.
    """
    os.setpriority(os.PRIO_PROCESS, pid, niceness)
    # a session's nice is what counts where the kernel has groups
    Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
