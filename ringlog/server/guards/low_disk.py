"""The last part of the disk is kept for writers.

PostgreSQL limits temporary files, but neither temporary tables, global ones of T-SQL (`##t`) among them, nor
their rows of its catalogue: any login could fill the disk with these. When less than a reserve is free, the
sessions that hold or write most are ended, and PostgreSQL removes their tables. The log names a disk that is
nearly full, and what to free.
"""

import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg

from ringlog.schema import catalogue, session
from ringlog.schema.sql_files import sql_file
from ringlog.server.embedded.settings import GiB, MiB
from ringlog.server.guards import sessions
from ringlog.server.guards.disk import Disk
from ringlog.server.processes.background import in_background

log = logging.getLogger(__name__)

_LOOK = 1.0  # seconds between two looks
_LARGE = 64 * MiB
"""of temporary tables of a session"""
_FAST = 8 * MiB
"""written between two looks, by a login that writes no rows"""
_TEMPORARY = re.compile(r"t(\d+)_\d+")
_UNLOGGED = re.compile(r"(\d+)_init")

# before PostgreSQL 16 its argument was another number
_BACKENDS: LiteralString = """
    select n, pg_stat_get_backend_pid(n) from pg_stat_get_backend_idset() as n
    where current_setting('server_version_num')::int >= 160000
"""
# a table that is not committed yet has its first file
_USERS_OF_GLOBALS = sql_file(__file__, "low_disk_globals")


def reserve(total: int) -> int:
    """Bytes of a disk of `total` bytes that are kept for writers."""
    return min(max(total // 20, GiB), 16 * GiB)


@contextmanager
def disk_kept_for_writers(conninfo: str, cluster: Path) -> Iterator[None]:
    """Inside the with block sessions are ended that fill the last part of the disk of PostgreSQL's data
    directory, `cluster`."""
    end = threading.Event()

    def watch() -> None:
        written: dict[int, int] = {}
        is_named = is_failing = False
        while not end.wait(_LOOK):
            disk = Disk.beneath(cluster.parent)
            if disk.is_nearly_full and not is_named:
                log.warning("%s; %s", disk, disk.remedy)
            is_named = disk.is_nearly_full
            if disk.free >= reserve(disk.total):
                written = {}
                continue
            try:
                with session.connect(conninfo, autocommit=True) as connection:
                    written = _end_greedy(connection, cluster, written)
                is_failing = False
            except psycopg.Error as error:
                if not is_failing:  # once is enough while the reason lasts
                    log.warning("sessions that fill the disk could not be ended: %s", error)
                is_failing = True

    with in_background("the disk", watch, end):
        yield


def _end_greedy(connection: psycopg.Connection[Any], cluster: Path, before: dict[int, int]) -> dict[int, int]:
    """Ends the sessions that fill the disk. `before`: the bytes that each process had written at the last
    look; returns those of this one."""
    found = sessions.sessions(connection)
    held, unlogged = _tables(cluster / "base")
    pids = dict(connection.execute(_BACKENDS).fetchall())
    greedy = {pids.get(number) for number, size in held.items() if size >= _LARGE}
    if large := [file for file, size in unlogged.items() if size >= _LARGE]:
        greedy |= {pid for (pid,) in connection.execute(_USERS_OF_GLOBALS, [large])}
    written = {}
    for each in found:
        with suppress(psutil.Error):
            written[each.pid] = psutil.Process(each.pid).io_counters().write_chars
            if not each.writes and written[each.pid] - before.get(each.pid, written[each.pid]) >= _FAST:
                greedy.add(each.pid)
    sessions.end_all(connection, (each for each in found if each.pid in greedy), "they filled the disk")
    if large and catalogue.exists(connection, "tsql", "global_table"):
        connection.execute("select tsql.end_globals()")
    return written


def _tables(base: Path) -> tuple[Counter[int], Counter[int]]:
    """Bytes of temporary tables by the number of their backend, and of unlogged tables by their file."""
    temporary: Counter[int] = Counter()
    unlogged: Counter[int] = Counter()
    for folder in base.iterdir():
        files = {entry.name: entry for entry in os.scandir(folder)}
        unlogged_files = {found[1] for name in files if (found := _UNLOGGED.fullmatch(name))}
        for name, entry in files.items():
            # a file may be removed at any moment; one of 1 GiB continues as `name.1`
            with suppress(FileNotFoundError):
                if found := _TEMPORARY.match(name):
                    temporary[int(found[1])] += entry.stat().st_size
                elif (first := name.partition(".")[0]) in unlogged_files:
                    unlogged[int(first)] += entry.stat().st_size
    return temporary, unlogged
