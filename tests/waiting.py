"""Waiting for events, with room for busy machines."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psutil
import psycopg

from ringlog.schema.change import is_lock_conflict

Found = TypeVar("Found")
# Seconds after which an expected event counts as missing.
PATIENCE = 100.0


def wait_until(find: Callable[[], Found], why: Callable[[], object] = lambda: None) -> Found:
    """Calls `find` until its result is true, and returns the result; `why` describes the present state."""
    end = time.monotonic() + PATIENCE
    while not (found := find()):
        assert time.monotonic() < end, why()
        time.sleep(0.02)
    return found


def is_closed(connection: psycopg.Connection[Any]) -> bool:
    """Whether PostgreSQL has ended a connection; a refused statement does not end it."""
    try:
        connection.execute("select 1")
    except psycopg.errors.OutOfMemory:
        return False
    except psycopg.OperationalError:
        return True
    return False


def wait_until_reachable(find: Callable[[], Found]) -> Found:
    """The same, while a server that the query needs, such as the archive server, may not answer yet."""

    def found() -> Found | None:
        with suppress(psycopg.OperationalError):
            return find()
        return None

    result = wait_until(found)
    assert result is not None
    return result


def among_readers(work: Callable[[], Iterator[str]]) -> None:
    """Moves weeks while others read: on a busy machine a lock may repeatedly not be available in time."""

    def done() -> bool:
        try:
            return not [line for line in work() if "its table is in use" in line]
        except psycopg.Error as error:
            if not is_lock_conflict(error):
                raise
            return False

    wait_until(done)


def is_alive(pid: int) -> bool:
    """Whether a process has not ended. If process 1 is not an init, nobody collects ended orphans."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_taken(call: Callable[[], object], refused: type[Exception]) -> bool:
    """Whether a call is not refused: a newly created procedure is not known at once."""
    with suppress(refused):
        call()
        return True
    return False


@contextmanager
def once(find: Callable[[], object], act: Callable[[], object]) -> Iterator[None]:
    """Calls a function in a thread when `find` becomes true while the block waits for something else."""

    def wait_and_act() -> None:
        wait_until(find)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()


def one_sleeps(connection: psycopg.Connection[Any]) -> bool:
    """Whether a process of PostgreSQL runs pg_sleep."""
    query = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
    return connection.execute(query).fetchone() != (0,)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process without processor time, as on a busy machine."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
