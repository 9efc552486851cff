"""Old rows of another server or of files go straight into the archive, week by week (`ringlog migrate`).

A week is written to a file below `<table>/_coming/`. While the next one is written, it is read back; its rows
are compared by number and checksum with the received ones. One transaction then enters the file in the
manifest, stores the summaries, which were made on the way, and records the progress of the source: after a
kill at any moment the next run continues with the same week. No row passes through PostgreSQL.
"""

import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from queue import Queue
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.history import files, late, ownership
from ringlog.history.connection import connect, rows
from ringlog.history.fields import of_log, stored_as
from ringlog.history.folder import Damaged, Folder
from ringlog.history.incoming import Checksum, Description, Incoming, IncomingSamples, Source, by_week
from ringlog.history.making_spans import enter_spans, spans_of
from ringlog.history.manifest import (
    ColdWeek,
    about,
    is_of_samples,
    manifest,
    new_file,
    note,
    settings,
    write_manifest,
)
from ringlog.history.pace import Pace
from ringlog.history.spans import Spans, combined
from ringlog.history.summaries import Turn, reach
from ringlog.history.summaries import alone as summaries_alone
from ringlog.history.summary_table import SummaryTable, summary_table
from ringlog.schema import archive_tables, catalogue, clock, logs, session
from ringlog.schema.change import driver, run, tried
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import BLOCK, LOG_TABLES
from ringlog.schema.partitions import Week, alone, log_partitions
from ringlog.schema.roles import become_owner
from ringlog.schema.tiers import archive_file, migration

_COMING = "_coming"
_SUMMED = 200_000
"""values that are summarised at once: a processor's cache holds them"""
_AHEAD = 4
"""batches that are read ahead of the writing"""


class MigrationError(Exception):
    """Old rows cannot be copied in the present state; the text has the reason."""


class Existing(StrEnum):
    """The rule for a week that the archive has already."""

    REFUSE = "refuse"
    MERGE = "merge"
    """of two rows with one key the archive's stays"""


@dataclass(frozen=True)
class Moved:
    """A week that is in the archive now."""

    week: Week
    rows: int
    """that were received"""
    values: int
    bytes: int
    """of its file"""
    repeated: int
    """rows that the archive had already"""
    conflicting: int
    """rows whose key the archive has with other values: left out"""
    checksum: str
    seconds: float
    fraction: float | None
    """of the source, that has been read"""


@dataclass(frozen=True)
class Progress:
    """The progress of a source; times are in UTC."""

    table: str
    source: str
    reached: datetime | None
    until: datetime
    rows: int
    values: int
    left_out: int
    began: datetime
    begun_at: float
    fraction: float
    noted: datetime

    @property
    def is_done(self) -> bool:
        return self.reached is not None and self.reached >= self.until

    def ends(self, now: datetime) -> datetime | None:
        """The expected end, at the speed of this run; None: not known yet."""
        done = self.fraction - self.begun_at
        if self.is_done or done <= 0 or self.noted <= self.began:
            return None
        return max(now, self.noted + (self.noted - self.began) * ((1 - self.fraction) / done))


class Migration:
    """Copies one source's rows into the archive of a table."""

    def __init__(
        self,
        engine: sa.Engine,
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
        self._engine = engine
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
                    enter = self._written(folder, week, of_week, _Collected(summaries, pool), until)
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
            with self._engine.begin() as connection:
                become_owner(connection)
                connection.execute(
                    migration.update().where(self._own).values(reached=until, fraction=1, noted=sa.func.now())
                )
            with self._engine.begin() as connection:
                write_manifest(connection, folder)

    @property
    def _own(self) -> sa.ColumnElement[bool]:
        return (migration.c.table_name == self._table) & (migration.c.source == str(self._source))

    def _begin(self) -> tuple[Folder, datetime, datetime | None]:
        """The archive, the end of the rows that go there, and the begin of those within retention."""
        with alone(self._engine, self._stopped), self._engine.begin() as connection:
            chosen = settings(connection)
            if chosen is None:
                raise MigrationError(
                    "there is no archive: write [history] with online and archive into the facility file, and"
                    " install it"
                )
            folder = Folder(chosen[1])
            there = dict(folder.names())
            ownership.demand(connection, folder, there, manifest(connection))
            retention = sa.text(
                "select cast(:now as timestamptz) - retention::interval from ringlog.every_table"
                " where table_name = :table"
            )
            now = self._now or clock.read(connection).trusted
            if now is None:
                raise MigrationError(
                    "housekeeping has not run yet: start ringlog serve, or run ringlog maintain"
                )
            known = connection.execute(retention, {"now": now, "table": self._table}).one_or_none()
            if known is None:
                raise MigrationError(f"there is no table {self._table!r}: ringlog status lists them")
            kept_from = None if known[0] is None else known[0].astimezone(UTC)
            of_samples = is_of_samples(connection, self._table)
            if of_samples != self._source.of_samples:
                raise MigrationError(
                    f"{self._table} has {'samples' if of_samples else 'rows'}, and the source has not"
                )
        ownership.claim(self._engine, folder)
        for name in there:
            # of a run that was killed
            if name.startswith(f"{self._table}/{_COMING}/"):
                folder.delete(name)
        return folder, Week.of(now - chosen[0]).start, kept_from

    def _noted(self, until: datetime) -> datetime | None:
        """Enters the run in the table of migrations. Returns the progress of earlier runs."""
        now = sa.func.now()
        entry = postgresql.insert(migration).values(
            table_name=self._table,
            source=str(self._source),
            until=until,
            began=now,
            noted=now,
            begun_at=0,
            fraction=0,
        )
        again = {"until": until, "began": now, "noted": now, "begun_at": migration.c.fraction}
        with self._engine.begin() as connection:
            become_owner(connection)
            connection.execute(
                entry.on_conflict_do_update(index_elements=["table_name", "source"], set_=again)
            )
            found = connection.scalar(sa.select(migration.c.reached).where(self._own))
        return None if found is None else found.astimezone(UTC)

    def _shapes(self) -> Incoming | IncomingSamples:
        if self._source.of_samples:
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
            (places,) = small.execute(
                sql.SQL("select count(*) from {}").format(sql.Identifier("online", self._table))
            ).fetchone() or (1,)
        types = {column: ColumnType.of_postgresql(text) for column, text in stored.items()}
        known = {column: kind for column, kind in types.items() if kind is not None}
        lengths = {
            column: kind.length
            for column, kind in known.items()
            if kind.length is not None and not kind.is_array
        }
        decimals = {
            column: decimal
            for column, kind in known.items()
            if pa.types.is_decimal(decimal := stored_as(kind))
        }
        return Incoming(empty.schema, lengths, max(1, int(places)), self._described, decimals)

    def _read(self, start: datetime | None, until: datetime) -> Iterator[pa.RecordBatch]:
        """The log's rows, read ahead by a thread of its own."""
        incoming = self._incoming
        assert incoming is not None
        ready: Queue[pa.RecordBatch | BaseException | None] = Queue(_AHEAD)
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
        self,
        folder: Folder,
        week: Week,
        batches: Iterator[pa.RecordBatch],
        spans: "_Collected",
        until: datetime,
    ) -> Callable[[], Moved]:
        """Writes a week's file. Returns the work that is left: to read it back and to enter it."""
        with self._engine.begin() as connection:
            self._demand_no_partition(connection, week)
            facts = about(connection, self._table)
            columns = {} if self._kind else of_log(connection, self._table)
            known = {each.begins: each for each in manifest(connection, self._table)}
        old = known.get(week.start)
        if old is not None and old.recalled_until is not None:
            raise MigrationError(
                f"the week of {week.start:%Y-%m-%d} is recalled: wait until it is archived again"
            )
        if old is not None and old.rows and self._existing is Existing.REFUSE:
            raise MigrationError(
                f"the archive has {old.rows} rows of the week of {week.start:%Y-%m-%d} already:"
                " --existing merge adds rows to them"
            )
        name = f"{self._table}/{_COMING}/{week.start:%Gw%V}.parquet"
        merging = _Merging(folder, old) if old is not None and old.rows else None
        newest = _Newest(self._table, self._kind) if self._kind else None
        came = Checksum()
        stored = came if merging is None else Checksum()

        def passing() -> Iterator[pa.RecordBatch]:
            counted = _counted(batches, came)
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

    def _demand_no_partition(self, connection: sa.Connection, week: Week) -> None:
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
        spans: "_Collected",
        newest: "_Newest | None",
        moved: Moved,
        until: datetime,
        left_out: int,
    ) -> None:
        """Gives the file its name, and enters it in the manifest with its summaries and the progress."""
        with alone(self._engine, self._stopped), summaries_alone(self._conninfo, Turn.AWAITED):
            with self._engine.begin() as connection:
                ownership.still_ours(connection, folder)
                become_owner(connection)
                name = new_file(connection, folder, self._table, moved.week)
            folder.rename(coming, name)
            week = written(file=name)

            def enter(connection: sa.Connection) -> bool:
                become_owner(connection)
                spans.store(driver(connection))
                if newest is not None:
                    newest.store(driver(connection), moved.week)
                if old is not None:
                    # waits until no reader uses the former manifest: see ringlog.history.reading
                    log = sql.Identifier(LOG_TABLES, self._table)
                    run(connection, sql.SQL("lock table only {} in access exclusive mode").format(log))
                self._demand_no_partition(connection, moved.week)
                there = {each.begins: each for each in manifest(connection, self._table)}
                if there.get(week.begins) != old:
                    raise MigrationError(
                        f"another process has changed the week of {week.begins:%Y-%m-%d} meanwhile"
                    )
                note(connection, week)
                connection.execute(archive_file.delete().where(archive_file.c.file == name))
                newly_left_out = left_out - self._left_out_before + moved.conflicting + moved.repeated
                connection.execute(
                    migration.update()
                    .where(self._own)
                    .values(
                        reached=moved.week.end,
                        until=until,
                        rows=migration.c.rows + moved.rows,
                        values=migration.c["values"] + moved.values,
                        left_out=migration.c.left_out + newly_left_out,
                        checksum=moved.checksum,
                        fraction=moved.fraction or 0,
                        noted=sa.func.clock_timestamp(),
                    )
                )
                return True

            def view(connection: sa.Connection) -> bool:
                # a transaction that has locked the log must not wait for the view's readers
                become_owner(connection)
                if archive_tables.is_there(connection, self._table) and not logs.has_archive(
                    connection, self._table
                ):
                    logs.view_archive(connection, self._table)
                return True

            for work in (view, enter):
                while tried(self._engine, work) is None:
                    if self._stopped():
                        raise MigrationError(f"log.{self._table} was in use all the time: run it again")
        if old is not None:
            folder.set_aside(old.file)
        self._left_out_before = left_out


def progress(connection: sa.Connection) -> list[Progress]:
    """The progress of each source of old rows, by table."""
    columns = [migration.c[name] for name in ("table_name", *(each.name for each in fields(Progress)[1:]))]
    found = connection.execute(sa.select(*columns).order_by(migration.c.table_name, migration.c.began))
    return [Progress(*(_in_utc(each) for each in row)) for row in found]


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


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


def _counted(batches: Iterator[pa.RecordBatch], sum_: Checksum) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sum_.add(batch)
        yield batch


class _Merging:
    """Merges received rows with those of the week's file."""

    def __init__(self, folder: Folder, old: ColdWeek) -> None:
        self._cold = files.read(folder, old.file, footer=old.footer)
        self._held: pa.RecordBatch | None = None
        """rows of the file that were read and not merged"""
        self.repeated = 0
        self.conflicting = 0

    def batches(self, came: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows, ordered by their key; of two with one key the file's."""
        schema = None
        for batch in came:
            schema, left = batch.schema, pa.table(batch)
            while left.num_rows and (cold := self._next()) is not None:
                count = late.until(pa.table(cold), left)
                if count < cold.num_rows:
                    self._held = cold.slice(count)
                if not count:
                    break
                cold = cold.slice(0, count)
                count = late.until(left, pa.table(cold))
                yield from self._merged(cold, left.slice(0, count))
                left = left.slice(count)
            yield from left.to_batches()
        while schema is not None and (cold := self._next()) is not None:
            yield from late.cast(schema, cold).to_batches()

    def _next(self) -> pa.RecordBatch | None:
        held, self._held = self._held, None
        return next(self._cold, None) if held is None else held

    def _merged(self, cold: pa.RecordBatch, came: pa.Table) -> Iterator[pa.RecordBatch]:
        there = late.found(iter([cold]), came)
        self.repeated += int(there.repeated.sum())
        self.conflicting += int(there.conflicting.sum())
        return late.merged(iter([cold]), came)


class _Newest:
    """The newest of the samples of each signal, by its number."""

    def __init__(self, table: str, kind: ColumnType) -> None:
        self._table = table
        self._kind = kind
        self._found: dict[int, pa.RecordBatch] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        numbers = batch["number"].to_numpy()
        for place in np.flatnonzero(np.append(numbers[1:] != numbers[:-1], [True])):
            self._found[int(numbers[place])] = batch.slice(int(place), 1)

    def store(self, connection: psycopg.Connection, week: Week) -> None:
        """Enters them where a signal's newest archived sample is older, and marks the week's summaries for
        housekeeping."""
        if not self._found:
            return
        rows = pa.Table.from_batches([*self._found.values()])
        times = rows["time"].cast(pa.int64()).to_numpy() * 1000 + rows["nanoseconds"].to_numpy()
        query = sql.SQL(
            'insert into ringlog.last_archived as known (number, table_name, "time", value, severity, status)'
            " values (%s, {table}, %s, (%s::{kind})::text, %s, %s)"
            ' on conflict (number) do update set "time" = excluded."time", value = excluded.value,'
            " severity = excluded.severity, status = excluded.status"
            ' where excluded."time" > known."time"'
        ).format(table=sql.Literal(self._table), kind=sql.SQL(self._kind.sql))
        alarms = [rows[name].to_pylist() for name in ("severity", "status")]
        values = [rows["number"].to_pylist(), times.tolist(), rows["value"].to_pylist(), *alarms]
        with connection.cursor() as cursor:
            cursor.executemany(query, [*zip(*values, strict=True)])
        connection.execute(
            'insert into ringlog.summary_mark (table_name, "time") select table_name, moment'
            " from ringlog.summarised, generate_series(%s::timestamptz,"
            " least(%s, until) - interval '1 us', levels[1] * interval '1 s') as moment"
            " where table_name = %s and levels <> '{}'",
            [week.start, week.end, self._table],
        )


class _Collected:
    """The summaries of a week's rows, made by a thread of `pool` and kept in a file until they are stored."""

    def __init__(self, table: SummaryTable | None, pool: ThreadPoolExecutor) -> None:
        self._table = table
        self._pool = pool
        self._spool = TemporaryFile()  # noqa: SIM115 - until close
        self._parts: list[Spans] = []
        self._count = 0
        self._futures: list[Future[None]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if self._table is None:
            return
        while len(self._futures) >= _AHEAD:
            self._futures.pop(0).result()
        self._futures.append(self._pool.submit(self._add, self._table, batch))

    def _add(self, table: SummaryTable, batch: pa.RecordBatch) -> None:
        step = max(1, _SUMMED // len(table.columns))
        for begin in range(0, batch.num_rows, step):
            self._parts.append(spans_of(table, batch.slice(begin, step)))
            block = BLOCK[table.levels[0]]
            self._count += len(self._parts[-1])
            is_block_over = self._parts[0].numbers[0] // block != self._parts[-1].numbers[-1] // block
            if is_block_over and self._count * len(table.columns) > _SUMMED:
                self._flush(block)

    def _flush(self, block: int | None = None) -> None:
        """Writes the spans to the file; with `block` only those of complete blocks of so many spans."""
        if not self._parts:
            return
        spans = combined(Spans.together(self._parts), 1)
        over = (
            np.ones(len(spans), bool)
            if block is None
            else spans.numbers // block < spans.numbers[-1] // block
        )
        pickle.dump(spans.chosen(over), self._spool, pickle.HIGHEST_PROTOCOL)
        self._parts = [] if block is None else [spans.chosen(~over)]
        self._count = sum(map(len, self._parts))

    def finish(self) -> None:
        """Waits for the thread."""
        for future in self._futures:
            future.result()
        self._futures = []
        self._flush()

    def store(self, connection: psycopg.Connection) -> None:
        """Stores the spans; again after a transaction that was rolled back."""
        if self._table is not None:
            enter_spans(connection, self._table, self._read())

    def _read(self) -> Iterable[Spans]:
        self._spool.seek(0)
        while True:
            try:
                yield pickle.load(self._spool)
            except EOFError:
                return

    def close(self) -> None:
        self._spool.close()
