"""Limits of the temporary files of all statements together, for which PostgreSQL has none.

PostgreSQL limits the files of one session (temp_file_limit). A crowd of sessions that sort at the same time
still fills the disk, and a writer's commit waits behind their writes.
"""

import logging
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import LiteralString

import psycopg

from ringlog.schema import session
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

MOST_WRITING = 16
"""statements that may write temporary files at the same time: the longest put took 0.26 s beside 16 of them,
and 1.4 s beside 48"""
_LOOK = 1.0  # seconds between two looks
_OF_PROCESS = re.compile(r"pgsql_tmp(\d+)\.")

_RUNNING: LiteralString = """
    select a.pid, a.usename, a.query_start
    from pg_stat_activity a join pg_roles r on r.oid = a.usesysid
    where a.pid = any(%s) and a.state = 'active' and not r.rolsuper
"""
_CANCEL: LiteralString = """
    select pg_cancel_backend(pid) from pg_stat_activity
    where pid = %s and query_start = %s and state = 'active'
"""


@dataclass(frozen=True)
class Statement:
    """A running statement that has temporary files."""

    pid: int
    login: str
    began: datetime


@contextmanager
def temporary_files_limited(conninfo: str, data: Path, limit: float) -> Iterator[None]:
    """Inside the with block at most MOST_WRITING statements write temporary files at the same time, and their
    files have at most `limit` bytes together. Others are cancelled: the youngest statement of the login that
    has most of them, or the one with the largest files. `data` is PostgreSQL's data directory.
    """
    end = threading.Event()

    def watch() -> None:
        before: dict[int, int] = {}
        while not end.wait(_LOOK):
            sizes = _sizes(data / "base" / "pgsql_tmp")
            writing = {pid for pid, size in sizes.items() if size > before.get(pid, 0)}
            before = sizes
            if len(writing) <= MOST_WRITING and sum(sizes.values()) <= limit:
                continue
            try:
                with session.connect(conninfo, autocommit=True) as connection:
                    _cancel(connection, sizes, writing, limit)
            except psycopg.Error as error:
                log.warning("the statements that write temporary files could not be cancelled: %s", error)

    with in_background("temporary files", watch, end):
        yield


def bytes_allowed(connection: psycopg.Connection) -> float:
    """temp_file_limit, in bytes: that of one session is also the limit of all together."""
    setting = "select setting::bigint from pg_settings where name = 'temp_file_limit'"
    row = connection.execute(setting).fetchone()
    kibibytes = -1 if row is None else int(row[0])
    return float("inf") if kibibytes < 0 else kibibytes * 1024


def _sizes(folder: Path) -> dict[int, int]:
    """Bytes of the temporary files of each of PostgreSQL's processes, by its number.

    Files of a parallel query are in a folder with the number of the leading process.
    """
    sizes: Counter[int] = Counter()
    # a file may be removed at any moment, and PostgreSQL makes the folder with the first one
    with suppress(FileNotFoundError):
        for entry in folder.iterdir():
            if found := _OF_PROCESS.match(entry.name):
                with suppress(FileNotFoundError):
                    files = entry.iterdir() if entry.is_dir() else (entry,)
                    sizes[int(found[1])] += sum(file.stat().st_size for file in files)
    return dict(sizes)


def _cancel(connection: psycopg.Connection, sizes: dict[int, int], writing: set[int], limit: float) -> None:
    """Cancels statements until the rest keeps both limits."""
    running = [Statement(*row) for row in connection.execute(_RUNNING, [[*sizes]])]
    cancelled = excess(running, sizes, writing, MOST_WRITING, limit)
    for statement in cancelled:
        connection.execute(_CANCEL, [statement.pid, statement.began])
    for login, number in Counter(statement.login for statement in cancelled).items():
        log.warning(
            "%d statements of %s were cancelled: %d statements wrote temporary files, of %d MiB together",
            number,
            login,
            len(writing),
            sum(sizes.values()) >> 20,
        )


def excess(
    running: list[Statement], sizes: dict[int, int], writing: set[int], most: int, limit: float
) -> list[Statement]:
    """The statements to be cancelled. `sizes`: bytes by process; `writing`: processes whose files grow."""
    cancelled: list[Statement] = []
    left = sorted(running, key=lambda each: each.began)
    while left and sum(sizes[each.pid] for each in left) > limit:
        largest = max(left, key=lambda each: sizes[each.pid])
        left.remove(largest)
        cancelled.append(largest)
    left = [each for each in left if each.pid in writing]
    while len(left) > most:
        greediest = Counter(each.login for each in left).most_common(1)[0][0]
        youngest = [each for each in left if each.login == greediest][-1]
        left.remove(youngest)
        cancelled.append(youngest)
    return cancelled
