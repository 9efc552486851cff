"""The space of a spool: its budget and the disk, and which rows are deleted when either is full."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ringlog.clients.spool.file import PAGE

# Seconds after which a disk that was full is tried again.
_RETRY = 30.0


class NoRoomError(Exception):
    """No row is left to thin."""


def log_bytes(budget: int) -> int:
    """Bytes of the log that SQLite writes before the file itself, and as many of the reserve."""
    return min(4 * 2**20, budget // 8)


class Room:
    """The limit of a spool's disk space: `budget` bytes, including its log and a reserve."""

    def __init__(self, db: sqlite3.Connection, file: Path, budget: int) -> None:
        self._db = db
        self._log = log_bytes(budget)
        self._budget = budget - 3 * self._log
        self._reserve = file.with_name(file.name + "-reserve")
        self._full_until: float | None = None

    def is_full(self, more: int) -> bool:
        """Whether there is no room for so many bytes."""
        free = self._number("pragma freelist_count")
        if self._full_until is not None:
            # the file cannot grow until the disk is tried again
            if time.monotonic() < self._full_until:
                return free < 16 + more // PAGE
            self._full_until = None
        self._keep_reserve()
        return (self._number("pragma page_count") - free) * PAGE + more > self._budget

    def disk_is_full(self) -> None:
        """SQLite has found the disk full: the reserve is freed for the checkpoint of the log."""
        self._full_until = time.monotonic() + _RETRY
        self._reserve.unlink(missing_ok=True)
        with suppress(sqlite3.OperationalError):
            self._db.execute("pragma wal_checkpoint(restart)").fetchall()

    def close(self) -> None:
        self._reserve.unlink(missing_ok=True)

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _keep_reserve(self) -> None:
        """Reserves disk space: enough for the checkpoint of the log, so that removing rows needs no more."""
        if self._reserve.exists():
            return
        try:
            file = os.open(self._reserve, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(file, 0, self._log)
            finally:
                os.close(file)
        except OSError:
            self._reserve.unlink(missing_ok=True)
            self._full_until = time.monotonic() + _RETRY


class Thinning:
    """Passes through the older half of the rows, each at a wider distance between the rows that are kept."""

    def __init__(self, db: sqlite3.Connection, budget: int) -> None:
        self._db = db
        # rows examined in one step: few enough for the log, and for a waiting source
        self._stretch = log_bytes(budget) // 4 // PAGE
        # the pass has reached the row of the first id and ends at the second
        self._passed = self._middle = 0
        self.keep_each = 2
        """ids that are multiples of this stay"""

    def to_delete(self, count: int, is_kept: Callable[[int], bool]) -> list[tuple[int, int]]:
        """Rows of the next stretch to be deleted, by id and time. `count`: the number of rows; `is_kept`:
        whether the row of an id must stay. Raises NoRoomError when all must."""
        for _ in range(count // self._stretch + 2):
            stretch = self._db.execute(
                "select id, time from row where id > ? and id <= ? order by id limit ?",
                (self._passed, self._middle, self._stretch),
            ).fetchall()
            deleted = [row for row in stretch if row[0] % self.keep_each and not is_kept(row[0])]
            if deleted:
                return deleted
            if stretch:
                self._passed = stretch[-1][0]
            else:
                self._begin_pass(count)
        raise NoRoomError

    def _begin_pass(self, count: int) -> None:
        """Another pass through the older half, at the distance that leaves it three quarters of its rows."""
        middle = self._db.execute("select id from row order by id limit 1 offset ?", (count // 2,)).fetchone()
        if middle is None:
            raise NoRoomError
        (oldest,) = self._db.execute("select min(id) from row").fetchone()
        self._passed, self._middle, self.keep_each = 0, middle[0], 2
        while (self._middle - oldest) / self.keep_each > 0.75 * (count // 2):
            self.keep_each *= 2
