"""Locks of a data directory: of the one process that starts its PostgreSQL, and of the commands that use it.

serving   locked by the process that has started PostgreSQL, or is about to, and contains its name
commands  locked, together, by the commands that need PostgreSQL
wanted    locked by a server that waits until a command has given way to it
served    the latest `ringlog serve`: its start, and its end if it was stopped
"""

import fcntl
import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import psutil

from ringlog.server.embedded.account import Account

log = logging.getLogger(__name__)

SERVING, COMMANDS, WANTED, SERVED = "serving", "commands", "wanted", "served"
# Seconds for the holder of the lock to write its name, or to remove it and unlock: ample, for a busy machine.
_NAMELESS = 10.0
_PAUSE = 0.05


@dataclass(frozen=True)
class Holder:
    """A process that has locked a data directory."""

    pid: int
    command: str
    since: str
    serves: bool
    """whether it runs until it is stopped, as `ringlog serve`; other commands end by themselves"""

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}, since {self.since})"


class Held(Exception):
    """Another process has locked the data directory."""

    def __init__(self, holder: Holder | None) -> None:
        self.holder = holder
        """None: it has not written its name"""
        super().__init__(str(holder or "another process"))


@contextmanager
def held(data: Path, account: Account, *, serves: bool) -> Iterator[Callable[[], None]]:
    """Locks the data directory for this process; the kernel unlocks it however the process ends. The function
    that this yields unlocks it before.

    Raises Held when another process has locked it.
    """
    with _opened(data / SERVING, account) as file:
        _lock(file)

        def release() -> None:
            if not file.closed:
                file.truncate(0)
                file.close()

        file.truncate(0)
        holder = _this_process(serves)
        json.dump(asdict(holder), file)
        file.flush()
        if serves:
            _note(data, account, Service(holder.pid, holder.since, None))
        try:
            yield release
        finally:
            if serves:
                _note(data, account, Service(holder.pid, holder.since, _now()))
            release()


@contextmanager
def wanted(data: Path, account: Account) -> Iterator[None]:
    """A command that has started PostgreSQL gives way to this process."""
    with _opened(data / WANTED, account) as file:
        # also while a command looks at it
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_wanted(data: Path, account: Account) -> bool:
    """Whether a server waits for the data directory."""
    with _opened(data / WANTED, account) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@dataclass(frozen=True)
class Service:
    """The latest `ringlog serve` of a data directory."""

    pid: int
    since: str
    until: str | None
    """when it was stopped; None: it runs, or ended without a stop"""


def _note(data: Path, account: Account, service: Service) -> None:
    with account.acting():
        unfinished = data / f"{SERVED}.new"
        unfinished.write_text(json.dumps(asdict(service)))
        unfinished.rename(data / SERVED)


def latest_service(data: Path) -> tuple[Service | None, bool]:
    """The latest service of a data directory that has a database, if there was one, and whether it runs."""
    try:
        service = Service(**json.loads((data / SERVED).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        service = None
    with (data / SERVING).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(file)
            return service, holder is None or holder.serves
    return service, False


class Commands:
    """The commands that use a PostgreSQL which one of them has started."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def outlast(self) -> None:
        """Waits until no other command runs. None begins then before this one is done."""
        logged = False
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not logged:
                    log.info("another command uses this PostgreSQL: waiting until it ends")
                    logged = True
                time.sleep(_PAUSE)


@contextmanager
def joined(data: Path, account: Account) -> Iterator[Commands]:
    """Adds this process to the commands. Waits while another one is stopping PostgreSQL."""
    with _opened(data / COMMANDS, account) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield Commands(file)


def _opened(path: Path, account: Account) -> IO[str]:
    with account.acting():
        return path.open("a+")


def _this_process(serves: bool) -> Holder:
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return Holder(os.getpid(), shlex.join([name, *sys.argv[1:]]), _now(), serves)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _lock(file: IO[str]) -> None:
    """Raises Held when another process has the lock."""
    until = time.monotonic() + _NAMELESS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if (holder := _holder(file)) or time.monotonic() > until:
                raise Held(holder) from None
        time.sleep(_PAUSE)


def _holder(file: IO[str]) -> Holder | None:
    """The process that has written its name."""
    file.seek(0)
    with suppress(ValueError, TypeError):
        holder = Holder(**json.loads(file.read()))
        if psutil.pid_exists(holder.pid):
            return holder
    return None
