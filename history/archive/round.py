"""A round of archiving: what its steps share, and how they write a week to a file."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TypeVar

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive import ownership
from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.manifest import ColdWeek, about, new_file
from ringlog.history.archive.parquet import files
from ringlog.history.archive.stored import Rows
from ringlog.history.connection import Connection
from ringlog.schema import session
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import tried
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.relations.partitions import Week

T = TypeVar("T")

_LONGEST_PAUSE = 0.5  # seconds


class Stopped(Exception):
    pass


class NotDone(Exception):
    """A step was postponed or cannot be done; the text is the line on it."""


@dataclass(frozen=True)
class Round:
    conninfo: str
    lock: psycopg.Connection
    """it holds the lock that excludes other rounds"""
    source: Connection
    folder: Folder
    stopped: Callable[[], bool]
    pauses: float
    writer: ThreadPoolExecutor
    """a thread that writes and compares files"""

    def tried(self, work: Callable[[psycopg.Connection], T]) -> T | None:
        """Makes a change while this round holds its lock; None when the tables stayed locked for too long."""
        # the lock is lost when PostgreSQL restarts, and another round may have begun
        self.lock.execute("select 1")
        with session.connect(self.conninfo) as connection:
            ownership.still_ours(connection, self.folder)
        return tried(self.conninfo, work)

    def write(
        self,
        stores: Rows,
        table: str,
        week: Week,
        source: Callable[[], Iterator[pa.RecordBatch]],
        schema: pa.Schema | None = None,
    ) -> ColdWeek:
        """Writes a week to a new file and compares it with its source, which is read twice. `schema`: that
        of the file, with its metadata, if it is not the log's present one. Raises Stopped, Damaged,
        ReadError."""
        return self.writer.submit(self._write, stores, table, week, source, schema).result()

    def _write(
        self,
        stores: Rows,
        table: str,
        week: Week,
        source: Callable[[], Iterator[pa.RecordBatch]],
        schema: pa.Schema | None,
    ) -> ColdWeek:
        with session.connect(self.conninfo) as connection:
            become_owner(connection)
            name = new_file(connection, self.folder, table, week)
            if schema is None:
                facts, columns = about(connection, table), stores.fields(connection, table)
            else:
                metadata = {key.decode(): text.decode() for key, text in (schema.metadata or {}).items()}
                facts = {key: text for key, text in metadata.items() if key.startswith("ringlog.")}
                columns = {field.name: field for field in schema}
        try:
            with self.folder.created(name) as stream:
                count = files.write(stream, self._throttled(source()), facts, columns)
            if not files.same(files.read(self.folder, name), self._throttled(source())):
                raise Damaged(f"{self.folder}/{name} differs from what was written; nothing was dropped")
            size, digest = self.folder.size(name), self.folder.digest(name)
            footer = files.footer(self.folder, name)
            return ColdWeek(table, week.start, week.end, name, count, size, digest, footer, None)
        except Exception:
            # the next attempt takes the same name
            with suppress(OSError):
                for each in (name, f"{name}.new"):
                    self.folder.delete(each)
            with session.connect(self.conninfo) as connection:
                become_owner(connection)
                connection.execute("delete from ringlog.archive_file where file = %s", [name])
            raise

    def _throttled(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches, with a pause after each for PostgreSQL's writers. Raises Stopped."""
        with closing(batches):  # type: ignore[type-var]
            begun = time.monotonic()
            for batch in batches:
                if self.stopped():
                    raise Stopped
                yield batch
                time.sleep(min(self.pauses * (time.monotonic() - begun), _LONGEST_PAUSE))
                begun = time.monotonic()


def keep_readers_out(connection: psycopg.Connection, table: str) -> None:
    """Waits until no reader uses the previous manifest: see ringlog.history.reading."""
    log_table = sql.Identifier(LOG_TABLES, table)
    connection.execute(sql.SQL("lock table only {} in access exclusive mode").format(log_table))
