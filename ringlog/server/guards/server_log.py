"""A limit of PostgreSQL's log, for which PostgreSQL has none: any login can write into it (RAISE LOG in a DO
block), and a stranger by logins that fail.
"""

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from ringlog.schema import session
from ringlog.server.embedded.settings import GiB, MiB
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

MOST = GiB
"""bytes of all files, on a large disk"""
_PART = 50
"""of the disk at most one part of so many"""
_KEPT = 31 * 86_400.0  # seconds
_LOOK = 0.5  # seconds between two looks
_FLOOD = 16 * MiB
"""bytes between two looks"""
_READ = MiB
# the begin of a line by the setting log_line_prefix
_BEGIN = re.compile(rb"^\S+ \S+ \S+ \[(\d+)\] ([^@\n]+)@", re.MULTILINE)
_SHARE = 10
"""A connection that writes less than one line of so many causes no flood."""
_END = """
    select pg_terminate_backend(a.pid) from pg_stat_activity as a join pg_roles as r on r.oid = a.usesysid
    where a.pid = %s and a.usename = %s and not r.rolsuper and a.backend_type = 'client backend'
"""


@dataclass(frozen=True)
class File:
    """A file of the log; the time of its latest line is in seconds since 1970."""

    path: Path
    size: int
    written: float


@contextmanager
def server_log_limited(conninfo: str, cluster: Path) -> Iterator[None]:
    """Inside the with block the log's files have MOST bytes together, less on a small disk, and more only by
    the lines of a second; connections that write more than _FLOOD between two looks are ended. `cluster` is
    PostgreSQL's data directory."""
    most = min(MOST, psutil.disk_usage(str(cluster)).total // _PART)
    folder = cluster / "log"
    end = threading.Event()

    def watch() -> None:
        before: dict[Path, int] = {}
        while not end.wait(_LOOK):
            files = files_of(folder)
            for file in surplus(files, most, time.time()):
                file.path.unlink(missing_ok=True)
            sizes = {file.path: file.size for file in files}
            written = sum(size - before.get(path, 0) for path, size in sizes.items())
            if before and written > _FLOOD:
                _end_flood(conninfo, files[-1].path)
            before = sizes

    with in_background("PostgreSQL's log", watch, end):
        yield


def files_of(folder: Path) -> list[File]:
    """The files of the log, the newest last."""
    files = []
    for path in folder.glob("postgresql-*.log"):
        # PostgreSQL or an operator may remove one at any moment
        with suppress(FileNotFoundError):
            status = path.stat()
            files.append(File(path, status.st_size, status.st_mtime))
    return sorted(files, key=lambda file: (file.written, file.path))


def surplus(files: Sequence[File], most: int, now: float) -> list[File]:
    """The files to be removed: old ones, and until the rest has `most` bytes those with the most bytes for
    the time that they cover, so that a flood removes its own lines. `files` are in the order of their times;
    the newest stays, because PostgreSQL writes it."""
    removed = [file for file in files[:-1] if file.written < now - _KEPT]
    left = [*files[len(removed) :]]
    while len(left) > 1 and sum(file.size for file in left) > most:
        begins = [now - _KEPT, *(file.written for file in left)]
        # a time may be that of several files
        rates = [
            file.size / max(file.written - begin, 0.001)
            for file, begin in zip(left[:-1], begins, strict=False)
        ]
        removed.append(left.pop(rates.index(max(rates))))
    return removed


def _end_flood(conninfo: str, newest: Path) -> None:
    """Ends the connections that have written most lines of the file, unless a superuser's."""
    with suppress(FileNotFoundError), newest.open("rb") as file:
        text = file.read(_READ)
        file.seek(max(file.tell(), newest.stat().st_size - _READ))
        text += b"\n" + file.read(_READ)
        lines = Counter(_BEGIN.findall(text))
        ended: Counter[str] = Counter()
        try:
            with session.connect(conninfo, autocommit=True) as connection:
                for (pid, name), number in lines.items():
                    if number * _SHARE >= lines.total():
                        login = name.decode(errors="replace")
                        ended[login] += connection.execute(_END, [int(pid), login]).rowcount
        except psycopg.Error as error:
            log.warning("connections that flood PostgreSQL's log could not be ended: %s", error)
        for login in +ended:
            log.warning("%d connections of %s were ended: they flooded PostgreSQL's log", ended[login], login)
