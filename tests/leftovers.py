"""Processes that survive the tests that started them."""

import os
import shlex
import time
import uuid
from contextlib import suppress

import psutil

from waiting import PATIENCE

# Inherited by every program that a test starts, and by its child processes.
_NAME = "PYTEST_STARTED_BY"
_GRACE = PATIENCE  # seconds for a process to end after a request


def mark() -> None:
    """Marks processes started from now on as this process's."""
    os.environ[_NAME] = f"{os.getpid()}-{uuid.uuid4().hex}"


def leftovers() -> list[str]:
    """The command lines of marked processes that do not end by themselves; they are killed."""
    until = time.monotonic() + _GRACE
    while (found := _marked()) and time.monotonic() < until:
        time.sleep(0.1)
    names = []
    for process in found:
        with suppress(psutil.NoSuchProcess):
            names.append(f"process {process.pid}: {shlex.join(process.cmdline())}")
            process.kill()
    return names


def _marked() -> list[psutil.Process]:
    wanted = os.environ[_NAME]
    found = []
    for process in psutil.process_iter():
        # only an unrestricted root can read the environment of another account's process
        with suppress(psutil.Error):
            if process.environ().get(_NAME) == wanted and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
