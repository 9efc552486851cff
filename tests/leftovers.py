"""Processes that survive the tests that started them."""

import os
import shlex
import subprocess
import sys
import time
import uuid
from contextlib import suppress

import psutil

from waiting import PATIENCE

# Inherited by every program that a test starts, and by its child processes.
_NAME = "PYTEST_STARTED_BY"
_GRACE = PATIENCE  # seconds for a process to end after a request
_guards: list[subprocess.Popen[bytes]] = []


def mark() -> None:
    """Marks processes started from now on as this process's. They end with it, also if it is killed."""
    name = f"{os.getpid()}-{uuid.uuid4().hex}"
    # without the mark, and without the signals of the terminal; its input ends with this process
    _guards.append(
        subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, start_new_session=True)
    )
    os.environ[_NAME] = name


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


if __name__ == "__main__":
    sys.stdin.read()
    os.environ[_NAME] = sys.argv[1]
    left = _marked()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            # a server stops its own processes
            if process.parent() not in left:
                process.terminate()
    leftovers()
