"""A server's process, which is started for an experiment, waited for, and ended with it."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from ringlog.loadtest.experiment.errors import LoadTestError

_STARTED, _STOPPED, _PAUSE = 180.0, 60.0, 0.1


@dataclass(frozen=True)
class Account:
    """A user of this machine, by numbers."""

    uid: int
    gid: int

    @classmethod
    def of(cls, process: psutil.Process) -> "Account":
        return cls(process.uids().real, process.gids().real)

    @property
    def is_self(self) -> bool:
        return self.uid == os.geteuid()

    def own(self, path: Path) -> None:
        if not self.is_self:
            os.chown(path, self.uid, self.gid)


@contextmanager
def new_folder(path: Path, account: Account) -> Iterator[Path]:
    """A folder of an account, removed at the end with its contents."""
    path.mkdir(mode=0o700, parents=True)
    account.own(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def run_program(command: Sequence[str | Path], account: Account, folder: Path) -> None:
    """Runs a program to its end. Raises LoadTestError with its output if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        user=None if account.is_self else account.uid,
        group=None if account.is_self else account.gid,
        extra_groups=None if account.is_self else [],
    )
    if done.returncode:
        raise LoadTestError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()}")


@contextmanager
def running(
    title: str,
    command: Sequence[str | Path],
    account: Account,
    folder: Path,
    ready: Callable[[], bool],
    end: signal.Signals = signal.SIGTERM,
) -> Iterator[psutil.Process]:
    """A server, from the moment that `ready` returns true. Raises LoadTestError if it ends before, or takes
    three minutes. Its output is in server.log of its folder."""
    log_file = folder / "server.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=None if account.is_self else account.uid,
            group=None if account.is_self else account.gid,
            extra_groups=None if account.is_self else [],
        )
    try:
        began = time.monotonic()
        while not ready():
            if process.poll() is not None or time.monotonic() - began > _STARTED:
                message = log_file.read_text(errors="replace").strip().rpartition("\n")[2]
                raise LoadTestError(f"{title} did not start: {message or 'it says nothing'}")
            time.sleep(_PAUSE)
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(end)
        try:
            process.wait(_STOPPED)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def room(folder: Path) -> int:
    """Bytes that a folder's files have on the disk."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
