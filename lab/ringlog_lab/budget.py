"""Limits some processes to a part of the processor, by control groups of Linux (version 1 or 2)."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from ringlog.loadtest.experiment.errors import LoadTestError

_MOUNTED = Path("/sys/fs/cgroup")
_PERIOD = 100_000  # microseconds: the kernel's own default
_EMPTY = 10.0  # seconds until a group is empty whose processes have ended


@dataclass(frozen=True)
class Hierarchy:
    """The control groups of this machine that divide the processor."""

    folder: Path
    version: int

    @classmethod
    def of_this_machine(cls, mounted: Path = _MOUNTED) -> "Hierarchy":
        """Raises LoadTestError without control groups, or if they do not control the processor."""
        if (mounted / "cpu/cpu.cfs_quota_us").is_file():
            return cls(mounted / "cpu", 1)
        if not (mounted / "cgroup.controllers").is_file():
            raise LoadTestError(f"{mounted} has no control groups for the processor")
        if "cpu" not in (mounted / "cgroup.controllers").read_text().split():
            raise LoadTestError(f"the control groups in {mounted} have no controller of the processor")
        control = mounted / "cgroup.subtree_control"
        if "cpu" not in control.read_text().split():
            with _changing(mounted):
                control.write_text("+cpu")
        return cls(mounted, 2)

    @contextmanager
    def group(self, name: str, cores: float) -> Iterator["Group"]:
        """A group whose processes get at most these cores, before other processes of the machine. They have
        ended when the block ends. Raises LoadTestError if no group can be made."""
        folder = self.folder / name
        quota = str(round(cores * _PERIOD))
        # with the largest weight, so that other work on the machine does not take the group's share
        settings = {
            1: {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota, "cpu.shares": "262144"},
            2: {"cpu.max": f"{quota} {_PERIOD}", "cpu.weight": "10000"},
        }
        with _changing(self.folder):
            folder.mkdir()
        try:
            with _changing(self.folder):
                for file, value in settings[self.version].items():
                    (folder / file).write_text(value)
            yield Group(folder)
        finally:
            _remove(folder)


@dataclass(frozen=True)
class Group:
    """A control group."""

    folder: Path

    def take(self, process: psutil.Process) -> None:
        """Puts a process of one thread and its children into the group; children it starts later are too."""
        with _changing(self.folder):
            self._add(process)
            for child in process.children(recursive=True):
                # it has ended meanwhile
                with suppress(ProcessLookupError):
                    self._add(child)

    def _add(self, process: psutil.Process) -> None:
        (self.folder / "cgroup.procs").write_text(str(process.pid))


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LoadTestError(
            f"the control groups in {folder} cannot be changed ({error.strerror}): this needs root, on a"
            " machine or in a container that may divide its processor"
        ) from None


def _remove(folder: Path) -> None:
    until = time.monotonic() + _EMPTY
    while True:
        try:
            folder.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.05)
