"""Old rows of another server or of files go straight into the archive, week by week (`ringlog migrate`).

A week is written to a file below `<table>/_coming/`. While the next one is written, it is read back; its rows
are compared by number and checksum with the received ones. One transaction then enters the file in the
manifest, stores the summaries, which were made on the way, and records the progress of the source: after a
kill at any moment the next run continues with the same week. No row passes through PostgreSQL.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from queue import Queue

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive import ownership
from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.leaving import show_archive
from ringlog.history.archive.manifest import (
    ColdWeek,
    about,
    form_of_table,
    manifest,
    new_file,
    note,
    settings,
    write_manifest,
)
from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.fields import of_log, stored_as
from ringlog.history.archive.parquet.forms import SAMPLES
from ringlog.history.archive.round import keep_readers_out
from ringlog.history.connection import connect, rows
from ringlog.history.incoming import Checksum, Description, Incoming, IncomingSamples, Source, by_week
from ringlog.history.migration.progress import Moved
from ringlog.history.migration.week import AHEAD, Merging, Newest, Summaries, counted_by
from ringlog.history.pace import Pace
from ringlog.history.summaries.summarising import Turn, reach
from ringlog.history.summaries.summarising import alone as summaries_alone
from ringlog.history.summaries.summary_table import summary_table
from ringlog.schema import catalogue, clock, session
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import tried
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.relations.partitions import Week, alone, log_partitions

_COMING = "_coming"

_OWN = "where table_name = %s and source = %s"


class MigrationError(Exception):
    """Old rows cannot be copied in the present state; the text has the reason."""


class Existing(StrEnum):
    """The rule for a week that the archive has already."""

    REFUSE = "refuse"
    MERGE = "merge"
    """of two rows with one key the archive's stays"""


class Migration:
    """Copies one source's rows into the archive of a table."""

    def __init__(
        self,
        conninfo: str,
        table: str,
        source: Source,
        described: Description,
        *,
        existing: Existing = Existing.REFUSE,
        rate: float = 0.0,
        now: datetime | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`rate`: the most values a second; 0: no limit. `stopped` is called between the weeks."""
        self._conninfo = conninfo
        self._table = table
        self._source = source
        self._described = described
        self._existing = existing
        self._rate = rate
        self._now = now
        self._stopped = stopped
        self._incoming: Incoming | IncomingSamples | None = None
        self._kind: ColumnType | None = None
        """of samples"""
        self._left_out_before = 0
        self._entered_at = 0.0

    @property
    def missing(self) -> Sequence[str]:
        """Columns of the log that the source lacks."""
        return self._incoming.missing if self._incoming else ()

    @property
    def left_out(self) -> dict[str, int]:
        """Rows that this run has left out, by the reason."""
        found = self._incoming
        return {} if found is None else {"without a time": found.without_time, "repeated": found.repeated}

    def run(self) -> Iterator[Moved]:
        """Moves the rows of weeks that are older than `online`. Yields each week when it is in the archive.

        Raises MigrationError, IncomingError, ownership.NotOurs, folder.Damaged.
        """
        with ExitStack() as stack:
            stack.enter_context(_one_run(self._conninfo, self._table))
            folder, until, kept_from = self._begin()
            reached = self._noted(until)
            if reached is not None and reached >= until:
                return
            start = max((each for each in (reached, kept_from) if each is not None), default=None)
            reach(self._conninfo, self._table, until)
            with session.connect(self._conninfo, autocommit=True) as connection:
                summaries = summary_table(connection, self._table)
            self._incoming = self._shapes()
            batches = stack.enter_context(closing(self._read(start, until)))  # type: ignore[type-var]
            pool = stack.enter_context(ThreadPoolExecutor(1, "summaries"))
            # a week is read back and entered while the next one is written
            entering = stack.enter_context(ThreadPoolExecutor(1, "entering"))
            self._entered_at = time.monotonic()
            before: Future[Moved] | None = None
            try:
                for week, of_week in by_week(batches):
                    enter = self._written(folder, week, of_week, Summaries(summaries, pool), until)
                    if before is not None:
                        yield before.result()
                    before = entering.submit(enter)
                    if self._stopped():
                        break
            except Exception:
                if before is not None:
                    yield before.result()
                raise
            if before is not None:
                yield before.result()
            if self._stopped():
                return
            with session.connect(self._conninfo) as connection:
                become_owner(connection)
                done = f"update ringlog.migration set reached = %s, fraction = 1, noted = now() {_OWN}"
                connection.execute(done.encode(), [until, *self._own])
            with session.connect(self._conninfo) as connection:
                write_manifest(connection, folder)

    @property
    def _own(self) -> tuple[str, str]:
        return self._table, str(self._source)

    def _begin(self) -> tuple[Folder, datetime, datetime | None]:
        """The archive, the end of the rows that go there, and the begin of those within retention."""
        with alone(self._conninfo, self._stopped), session.connect(self._conninfo) as connection:
            chosen = settings(connection)
            if chosen is None:
                raise MigrationError(
                    "there is no archive: write [history] with online and archive into the facility file, and"
                    " install it"
                )
            folder = Folder(chosen[1])
            there = dict(folder.names())
            ownership.demand(connection, folder, there, manifest(connection))
            retention = "select %s - retention::interval from ringlog.every_table where table_name = %s"
            now = self._now or clock.read(connection).trusted
            if now is None:
                raise MigrationError(
                    "housekeeping has not run yet: start ringlog serve, or run ringlog maintain"
                )
            known = connection.execute(retention, [now, self._table]).fetchone()
            if known is None:
                raise MigrationError(f"there is no table {self._table!r}: ringlog status lists them")
            kept_from = None if known[0] is None else known[0].astimezone(UTC)
            form = form_of_table(connection, self._table)
            if form is not self._source.form:
                raise MigrationError(f"{self._table} has {form.name}, and the source has not")
        ownership.claim(self._conninfo, folder)
        for name in there:
            # of a run that was killed
            if name.startswith(f"{self._table}/{_COMING}/"):
                folder.delete(name)
        return folder, Week.of(now - chosen[0]).start, kept_from

    def _noted(self, until: datetime) -> datetime | None:
        """Enters the run in the table of migrations. Returns the progress of earlier runs."""
        with session.connect(self._conninfo) as connection:
            become_owner(connection)
            ((found,),) = connection.execute(
                "insert into ringlog.migration"
                " (table_name, source, until, began, noted, begun_at, fraction)"
                " values (%s, %s, %s, now(), now(), 0, 0) on conflict (table_name, source) do update"
                " set until = excluded.until, began = now(), noted = now(), begun_at = migration.fraction"
                " returning reached",
                [*self._own, until],
            ).fetchall()
        return None if found is None else found.astimezone(UTC)

    def _shapes(self) -> Incoming | IncomingSamples:
        if self._source.form is SAMPLES:
            query = "select type from ringlog.sample_table where table_name = %s"
            with session.connect(self._conninfo) as small:
                (kind,) = small.execute(query, [self._table]).fetchone() or ("double",)
            self._kind = ColumnType.of(kind)
            return IncomingSamples(self._kind.arrow)
        nothing = sql.SQL("select * from {} limit 0").format(sql.Identifier(LOG_TABLES, self._table))
        with closing(connect(self._conninfo)) as connection:
            (empty,) = rows(connection, nothing)
        with session.connect(self._conninfo) as small:
            stored = catalogue.columns(small, sql.Identifier(LOG_TABLES, self._table))
            (ring_rows,) = small.execute(
                sql.SQL("select count(*) from {}").format(sql.Identifier("online", self._table))
            ).fetchone() or (1,)
        types = {column: ColumnType.of_postgresql(text) for column, text in stored.items()}
        supported = {column: kind for column, kind in types.items() if kind is not None}
        lengths = {
            column: kind.length
            for column, kind in supported.items()
            if kind.length is not None and not kind.is_array
        }
        decimals = {
            column: decimal
            for column, kind in supported.items()
            if pa.types.is_decimal(decimal := stored_as(kind))
        }
        return Incoming(empty.schema, lengths, max(1, int(ring_rows)), self._described, decimals)

    def _read(self, start: datetime | None, until: datetime) -> Iterator[pa.RecordBatch]:
        """The log's rows, read ahead by a thread of its own."""
        incoming = self._incoming
        assert incoming is not None
        ready: Queue[pa.RecordBatch | BaseException | None] = Queue(AHEAD)
        ended = threading.Event()

        def work() -> None:
            try:
                came = self._limited(start, until, ended)
                with closing(came), closing(incoming.batches(came, start, until)) as made:  # type: ignore[type-var]
                    for batch in made:
                        ready.put(batch)
                        if ended.is_set():
                            return
                ready.put(None)
            except BaseException as error:  # raised where the rows are used
                ready.put(error)

        thread = threading.Thread(target=work, name="incoming", daemon=True)
        thread.start()
        try:
            while (batch := ready.get()) is not None:
                if isinstance(batch, BaseException):
                    raise batch
                yield batch
        finally:
            ended.set()
            while thread.is_alive():
                with suppress(Exception):
                    ready.get(timeout=0.1)

    def _limited(
        self, start: datetime | None, until: datetime, ended: threading.Event
    ) -> Iterator[pa.RecordBatch]:
        """The source's batches, not faster than the rate."""
        assert self._incoming is not None
        pace = Pace(self._rate)
        for batch in self._source.batches(self._incoming.schema, start, until):
            yield batch
            pace.passed(batch.num_rows * (1 if self._kind else batch.num_columns), ended)

    def _written(
        self, folder: Folder, week: Week, batches: Iterator[pa.RecordBatch], spans: Summaries, until: datetime
    ) -> Callable[[], Moved]:
        """Writes a week's file. Returns the work that is left: to read it back and to enter it."""
        with session.connect(self._conninfo) as connection:
            self._demand_no_partition(connection, week)
            facts = about(connection, self._table)
            columns = {} if self._kind else of_log(connection, self._table)
            known = {each.begins: each for each in manifest(connection, self._table)}
        old = known.get(week.start)
        self._demand_new(week, old)
        name = f"{self._table}/{_COMING}/{week.start:%Gw%V}.parquet"
        merging = Merging(folder, old) if old is not None and old.rows else None
        newest = Newest(self._table, self._kind) if self._kind else None
        came = Checksum()
        stored = came if merging is None else Checksum()

        def passing() -> Iterator[pa.RecordBatch]:
            counted = counted_by(batches, came)
            for batch in counted if merging is None else merging.batches(counted):
                if newest is not None:
                    newest.add(batch)
                spans.add(batch)
                if merging is not None:
                    stored.add(batch)
                yield batch

        with folder.created(name) as stream:
            files.write(stream, passing(), facts, columns)
        incoming = self._incoming
        assert incoming is not None
        left_out = incoming.without_time + incoming.repeated + self._source.left_out
        width = 1 if self._kind else len(incoming.schema) - len(KEY_COLUMNS)
        fraction = self._source.fraction()

        def enter() -> Moved:
            with closing(spans):
                back = Checksum()
                for batch in files.read(folder, name):
                    back.add(batch)
                if back.text() != stored.text():
                    raise Damaged(f"{folder}/{name} differs from what was written")
                written = partial(
                    ColdWeek,
                    self._table,
                    week.start,
                    week.end,
                    rows=stored.rows,
                    bytes=folder.size(name),
                    sha256=folder.digest(name),
                    footer=files.footer(folder, name),
                    recalled_until=None,
                )
                moved = Moved(
                    week,
                    came.rows,
                    came.rows * width,
                    folder.size(name),
                    merging.repeated if merging else 0,
                    merging.conflicting if merging else 0,
                    came.text(),
                    time.monotonic() - self._entered_at,
                    fraction,
                )
                spans.finish()
                self._commit(folder, name, written, old, spans, newest, moved, until, left_out)
            self._entered_at = time.monotonic()
            return moved

        return enter

    def _demand_new(self, week: Week, old: ColdWeek | None) -> None:
        if old is not None and old.recalled_until is not None:
            raise MigrationError(
                f"the week of {week.start:%Y-%m-%d} is recalled: wait until it is archived again"
            )
        if old is not None and old.rows and self._existing is Existing.REFUSE:
            raise MigrationError(
                f"the archive has {old.rows} rows of the week of {week.start:%Y-%m-%d} already:"
                " --existing merge adds rows to them"
            )

    def _demand_no_partition(self, connection: psycopg.Connection, week: Week) -> None:
        for partition in log_partitions(connection, self._table):
            if partition.start < week.end and week.start < partition.end:
                raise MigrationError(
                    f"PostgreSQL has log.{partition.name}, which is older than online:"
                    " run ringlog archive now first"
                )

    def _commit(
        self,
        folder: Folder,
        coming: str,
        written: Callable[..., ColdWeek],
        old: ColdWeek | None,
        spans: Summaries,
        newest: Newest | None,
        moved: Moved,
        until: datetime,
        left_out: int,
    ) -> None:
        """Gives the file its name, and enters it in the manifest with its summaries and the progress."""
        with alone(self._conninfo, self._stopped), summaries_alone(self._conninfo, Turn.AWAITED):
            with session.connect(self._conninfo) as connection:
                ownership.still_ours(connection, folder)
                become_owner(connection)
                name = new_file(connection, folder, self._table, moved.week)
            folder.rename(coming, name)
            week = written(file=name)

            def enter(connection: psycopg.Connection) -> bool:
                become_owner(connection)
                spans.store(connection)
                if newest is not None:
                    newest.store(connection, moved.week)
                if old is not None:
                    keep_readers_out(connection, self._table)
                self._demand_no_partition(connection, moved.week)
                there = {each.begins: each for each in manifest(connection, self._table)}
                if there.get(week.begins) != old:
                    raise MigrationError(
                        f"another process has changed the week of {week.begins:%Y-%m-%d} meanwhile"
                    )
                note(connection, week)
                connection.execute("delete from ringlog.archive_file where file = %s", [name])
                newly_left_out = left_out - self._left_out_before + moved.conflicting + moved.repeated
                counts = (moved.rows, moved.values, newly_left_out)
                progress = (moved.week.end, until, *counts, moved.checksum, moved.fraction or 0)
                connection.execute(
                    "update ringlog.migration set reached = %s, until = %s, rows = rows + %s,"
                    ' "values" = "values" + %s, left_out = left_out + %s, checksum = %s, fraction = %s,'
                    f" noted = clock_timestamp() {_OWN}".encode(),
                    [*progress, *self._own],
                )
                return True

            for work in (partial(show_archive, table=self._table), enter):
                while tried(self._conninfo, work) is None:
                    if self._stopped():
                        raise MigrationError(f"log.{self._table} was in use all the time: run it again")
        if old is not None:
            folder.set_aside(old.file)
        self._left_out_before = left_out


@contextmanager
def _one_run(conninfo: str, table: str) -> Iterator[None]:
    """Keeps other runs out. Raises MigrationError when there is one."""
    lock = "(hashtext('ringlog migrate'), hashtext(%s))"
    with session.connect(conninfo, autocommit=True) as connection:
        taken = connection.execute(f"select pg_try_advisory_lock{lock}".encode(), [table]).fetchone()
        if taken != (True,):
            raise MigrationError(f"another process moves old rows of {table}")
        try:
            yield
        finally:
            # a closed session keeps it until PostgreSQL notices
            with suppress(psycopg.OperationalError):
                connection.execute(f"select pg_advisory_unlock{lock}".encode(), [table])
