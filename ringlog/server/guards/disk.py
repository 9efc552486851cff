"""The disk of a data directory: whether it is nearly full, and what can be freed on it."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from ringlog.errors import ServerError
from ringlog.server.embedded.settings import GiB

_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = "No space left on device"  # PostgreSQL's message has the C library's text


class FullDisk(ServerError):
    """Something failed because the disk of a data directory is full."""


@dataclass(frozen=True)
class Disk:
    """The file system of a data directory; sizes in bytes."""

    data: Path
    mount: Path
    free: int
    total: int

    @classmethod
    def beneath(cls, data: Path) -> "Disk":
        """That of a data directory, which need not exist yet."""
        folder = next(each for each in (data.absolute(), *data.absolute().parents) if each.exists())
        mount = next(each for each in (folder, *folder.parents) if each.is_mount())
        usage = psutil.disk_usage(str(folder))
        return cls(data, mount, usage.free, usage.total)

    @property
    def is_nearly_full(self) -> bool:
        return self.free < min(5 * GiB, self.total // 10)

    def __str__(self) -> str:
        return f"{self.free / 1e9:.1f} GB are free for {self.data}, on the disk mounted at {self.mount}"

    @property
    def remedy(self) -> str:
        return (
            f"free space on {self.mount}: files of other programs, old copies of ringlog backup; then set a"
            f" shorter retention, or an archive on another disk. Never delete files in {self.data} by hand"
        )


@contextmanager
def full_disk_named(data: Path) -> Iterator[None]:
    """Errors that a full disk causes name the disk, and what to free. Raises FullDisk for them."""
    try:
        yield
    except FullDisk:
        raise
    except (OSError, psycopg.Error, ServerError) as error:
        if getattr(error, "errno", None) in _FULL or _WORDS in str(error):
            found = Disk.beneath(data)
            raise FullDisk(f"the disk is full: {found}; {found.remedy}. The error was: {error}") from error
        raise
