"""Imports old rows from files into the logs, by COPY and the rules of put.

A block of rows at a time is copied into a table of the session, from which the procedure import_<table>
stores it and records the position in the file, in one transaction: see procedures/rows/import.sql. If it is
killed at any moment, the same command continues after the last stored row.
"""

import hashlib
import socket
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import Error, OperationalError
from adbc_driver_manager.dbapi import Connection
from psycopg import sql

from ringlog.loader.sources import SourceError
from ringlog.loader.sources.blocks import File
from ringlog.schema import session
from ringlog.schema.change import CHANNEL
from ringlog.schema.facility import Table

_LOCKED = "55P03"
_TWICE = "23505"
_PASSING = frozenset({"25006", "40001", "40P01", _LOCKED, _TWICE, "53300", "57P01", "57P02", "57P03"})
"""SQLSTATEs of temporary errors."""
_ATTEMPTS = 5
"""attempts for a block that PostgreSQL refuses for such a reason"""
_PAUSE = 1.0  # seconds
_SHORT = 2.0  # seconds
"""seconds in which a round of housekeeping ends, unless it archives weeks"""


_Item = TypeVar("_Item")


@dataclass
class Progress:
    """The progress of a table's import. Rows are of this run; `part` is of all its files, 0 to 1."""

    table: str
    rows: int = 0
    stored: int = 0
    repeated: int = 0
    refused: int = 0
    skipped: int = 0
    """rows imported by an earlier run"""
    part: float = 0.0
    trouble: str = ""
    """the reason why it waits"""
    failure: str = ""
    """the error that has ended it"""
    ended: bool = False

    def __str__(self) -> str:
        counts = f"{self.table}: {self.rows} rows, {self.stored} new, {self.repeated} already stored"
        counts += f", {self.refused} refused" if self.refused else ""
        return counts + (f", {self.skipped} imported by an earlier run" if self.skipped else "")


class Stopped(Exception):
    """The import was stopped."""


class Imports:
    """Imports files into tables, some tables at a time, in threads."""

    def __init__(
        self,
        files: dict[str, Sequence[Path]],
        tables: Sequence[Table],
        zone: ZoneInfo,
        servers: Mapping[str, str],
    ) -> None:
        """`servers` has the connection string of each table's server."""
        self._stop = threading.Event()
        self.progress = {table.name: Progress(table.name) for table in tables}
        self._imports = [
            _Import(
                table, files[table.name], zone, servers[table.name], self.progress[table.name], self._stop
            )
            for table in tables
        ]

    def running(self, at_a_time: int, pause: float) -> Iterator[None]:
        """Runs all of them; yields to the caller every `pause` seconds until they have ended."""
        with ThreadPoolExecutor(at_a_time) as pool:
            try:
                runs = [pool.submit(each.run) for each in self._imports]
                while not all(run.done() for run in runs):
                    yield
                    self._stop.wait(pause)
                for run in runs:
                    run.result()
            finally:
                self._stop.set()

    def stop(self) -> None:
        """Ends them after their current blocks."""
        self._stop.set()


class _Import:
    def __init__(
        self,
        table: Table,
        files: Sequence[Path],
        zone: ZoneInfo,
        conninfo: str,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self._table = table
        self._files = files
        self._zone = zone
        self._conninfo = conninfo
        self._progress = progress
        self._stop = stop
        self._sizes = [file.stat().st_size for file in files]
        self._weeks: set[datetime] = set()
        self._waits = True
        """whether to wait for housekeeping: only once, because it may take long"""

    def run(self) -> None:
        """Imports the files one after another. An error that ends the import is stored in the progress."""
        try:
            for number, file in enumerate(self._files):
                self._again_and_again(file, number)
            self._progress.ended = True
        except Stopped:
            pass
        except (SourceError, OSError) as error:
            self._progress.failure = str(error)
        except Error as error:
            self._progress.failure = f"{self._table.name}: {_message(error)}"

    def _again_and_again(self, path: Path, number: int) -> None:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        attempts, before = 0, -1
        while True:
            try:
                with closing(session.arrow(self._conninfo)) as connection:
                    self._import(connection, path, digest, number)
                return
            except Error as error:
                is_lost = isinstance(error, OperationalError) and not error.sqlstate
                if not is_lost and error.sqlstate not in _PASSING:
                    raise
                attempts = attempts + 1 if before == self._progress.rows else 1
                before = self._progress.rows
                if not is_lost and attempts == _ATTEMPTS:
                    raise
                self._progress.trouble = _message(error)
            if self._stop.wait(_PAUSE):
                raise Stopped

    def _import(self, connection: Connection, path: Path, digest: str, number: int) -> None:
        name = f"{socket.gethostname()}:{path.resolve()}"
        begun = sql.SQL("select rows, base, ended is not null from ringlog.begin_import({}, {}, {})").format(
            self._table.name, name, digest
        )
        taken, base, ended = _answer(connection, begun)
        connection.commit()
        progress = self._progress
        if not progress.trouble:
            progress.skipped += taken
        progress.trouble = ""
        if ended:
            return
        file = File(path, self._table, self._zone)
        # the next block is read and converted while PostgreSQL stores one
        with closing(_ahead((block, file.done) for block in file.blocks(taken))) as blocks:
            for block, done in blocks:
                if self._stop.is_set():
                    raise Stopped
                stored, repeated, refused = self._take(connection, name, block, base, taken, file.numbered)
                taken += block.num_rows
                progress.rows += block.num_rows
                progress.stored += stored
                progress.repeated += repeated
                progress.refused += refused
                progress.part = (sum(self._sizes[:number]) + done) / max(1, sum(self._sizes))
        self._take_over(connection, name, taken, file.numbered, last=True)

    def _take(
        self, connection: Connection, name: str, block: pa.RecordBatch, base: int, taken: int, numbered: bool
    ) -> tuple[int, int, int]:
        """Stores the block of a file that follows so many rows."""
        if not numbered:
            numbers = pa.array(range(base + taken, base + taken + block.num_rows), pa.int64())
            rows = pa.scalar(self._table.rows, pa.int64())
            # Arrow has no remainder
            remainder = pc.subtract(numbers, pc.multiply(pc.divide(numbers, rows), rows))
            block = block.add_column(0, "seq_no", pc.add(remainder, 1).cast(pa.int32()))
        self._make_weeks(connection, block["time"])
        with closing(connection.cursor()) as cursor:
            cursor.adbc_ingest(self._table.name, block, mode="append", db_schema_name="pg_temp")
        return self._take_over(connection, name, taken, numbered, last=False)

    def _take_over(
        self, connection: Connection, name: str, taken: int, numbered: bool, *, last: bool
    ) -> tuple[int, int, int]:
        call = sql.SQL("select stored, repeated, refused from ringlog.{}({}, {}, {}, {})").format(
            sql.Identifier(f"import_{self._table.name}"), name, taken, numbered, last
        )
        stored, repeated, refused = _answer(connection, call)
        if last:
            # the created weeks
            _run(connection, sql.SQL("notify {}").format(sql.Identifier(CHANNEL)))
        connection.commit()
        return stored, repeated, refused

    def _make_weeks(self, connection: Connection, times: pa.Array) -> None:
        """Makes the partitions for rows of these times. Housekeeping makes those that cannot be made now;
        until then their rows are in the default partition."""
        weeks = pc.unique(pc.floor_temporal(times, unit="week")).to_pylist()
        missing = [week for week in weeks if week not in self._weeks]
        if not missing:
            return
        end = time.monotonic() + (_SHORT if self._waits else 0)
        for week in missing:
            while not self._make_week(connection, week):
                if time.monotonic() > end:
                    self._waits = False
                    return
                time.sleep(_PAUSE / 10)
            self._weeks.add(week)

    def _make_week(self, connection: Connection, week: datetime) -> bool:
        """False: other sessions prevent it at present."""
        make = sql.SQL("select ringlog.make_week({}, {})").format(self._table.name, week)
        try:
            _answer(connection, make)
            connection.commit()
        except Error as error:
            connection.rollback()
            # rows outside all weeks stay in the default partition
            if error.sqlstate not in (_LOCKED, "23514"):
                raise
            return error.sqlstate != _LOCKED
        return True


def _ahead(items: Iterator[_Item]) -> Generator[_Item, None, None]:
    """The same items; a thread prepares the next one while the caller uses one."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def _answer(connection: Connection, query: sql.Composable) -> tuple:  # type: ignore[type-arg]
    with closing(connection.cursor()) as cursor:
        cursor.execute(query.as_string())
        row = cursor.fetchone()
        assert row is not None
        return row


def _run(connection: Connection, statement: sql.Composable) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement.as_string())


def _message(error: Error) -> str:
    """PostgreSQL's message, without the driver's additions."""
    return " ".join(str(error).split())
