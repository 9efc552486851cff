"""The cold tier: old weeks of the logs move from PostgreSQL to Parquet files.

A week is written to a new file, read back and compared with its rows value by value; then one transaction
adds it to the manifest and drops its partition. A trigger records rows that arrive meanwhile; they stay in
the default partition. The next round merges them, and all later rows of a cold week, into a new file of the
week. After a kill at any moment the next round continues with the same week.

A file is recorded in the database before it is written and when it leaves the manifest, and only recorded
files are deleted: the unfinished file of a killed round in the next round, a file that has left the manifest
when `keep_replaced` is over. Until then it is set aside and can still be read, so that a database restored to
an earlier moment finds the files of its manifest.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql

from ringlog.history import fields, files, iceberg, late, ownership, priority
from ringlog.history.books import enter
from ringlog.history.connection import BeyondArrow, Connection, ReadError, connect, rows
from ringlog.history.folder import Damaged, Folder, aside
from ringlog.history.late import KEY
from ringlog.history.manifest import (
    ColdWeek,
    about,
    default_partition,
    forget,
    is_of_samples,
    manifest,
    new_file,
    note,
    refill_default,
    settings,
    verify,
    write_manifest,
)
from ringlog.history.sample_blocks import BLOCK, samples_of
from ringlog.schema import archive_tables, clock, logs
from ringlog.schema.change import run, tried
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.partitions import Partition, Week, alone, log_partitions
from ringlog.schema.roles import become_owner
from ringlog.schema.tiers import archive_file, damage, late_row, note_dropped

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSES = 1.0
"""Reading the log pauses as long as it works, which leaves disk and processors to writers."""
_LONGEST_PAUSE = 0.5  # seconds


@dataclass(frozen=True)
class _Round:
    """The parameters of a round."""

    engine: sa.Engine
    lock: sa.Connection
    """it holds the lock that excludes other rounds"""
    source: Connection
    folder: Folder
    stopped: Callable[[], bool]
    pauses: float
    writer: ThreadPoolExecutor
    """a thread that writes and compares files"""

    def tried(self, work: Callable[[sa.Connection], T]) -> T | None:
        """Makes a change while this round holds its lock; None when the tables stayed locked for too long."""
        # the lock is lost when PostgreSQL restarts, and another round may have begun
        self.lock.execute(sa.select(1))
        with self.engine.begin() as connection:
            ownership.still_ours(connection, self.folder)
        return tried(self.engine, work)


class _Stopped(Exception):
    pass


class _Overtaken(Exception):
    """Another round changed the manifest after this one read the rows."""


def archive(
    engine: sa.Engine,
    conninfo: str,
    now: datetime | None = None,
    stopped: Callable[[], bool] = lambda: False,
    *,
    pauses: float = PAUSES,
) -> Iterator[str]:
    """Sets aside weeks past retention, archives old weeks, merges late rows, and deletes files whose time
    set aside is over. Yields a line for each.

    `now` is by default PostgreSQL's clock, if the last round of housekeeping trusted it
    (ringlog.schema.clock). `stopped` is called between the steps, and while another process maintains the
    logs: raises partitions.Stopped when it returns true. `pauses`: seconds of rest for each second of
    reading; unless it is 0, reading and writing also have the lowest priority on the machine. A week with a
    damaged file is reported and keeps its file and its late rows; a week with a value that Arrow cannot
    represent is reported and stays in PostgreSQL. Raises ownership.NotOurs when the folder is another
    database's, or has none of the files of this one.
    """
    lowered = priority.lower_thread if pauses else None
    with (
        alone(engine, stopped) as lock,
        closing(connect(conninfo)) as source,
        ThreadPoolExecutor(1, "archive", initializer=lowered) as writer,
    ):
        if pauses:
            priority.lower_backend(source.streams)
        with engine.begin() as connection:
            chosen = settings(connection)
            moment = now or clock.read(connection).believed
            known = manifest(connection)
        if chosen is None:
            return
        folder = Folder(chosen[1])
        there = dict(folder.names())
        with engine.begin() as connection:
            ownership.demand(connection, folder, there, known)
        # first, because deleting may free the disk space that the rest needs
        yield from _tidy(engine, folder, there, moment)
        ownership.claim(engine, folder)
        this = _Round(engine, lock, source, folder, stopped, pauses, writer)
        with engine.begin() as connection:
            expired = _expired(connection, moment)
        for week in expired:
            if this.tried(partial(_forget, week=week)) is not None:
                folder.set_aside(week.file)
                yield f"set aside {week.file}: past retention"
        with engine.begin() as connection:
            due = _due(connection, moment - chosen[0], moment)
            with_late = _late_weeks(connection)
        failed: set[str] = set()

        def done(table: str, work: Callable[[], str]) -> str:
            """The line of a step. After an unreadable week the others are still archived."""
            try:
                return work()
            except (ReadError, sa.exc.DBAPIError) as error:
                lock.execute(sa.select(1))  # raises if PostgreSQL has stopped
                failed.add(table)
                message = " ".join(str(error.orig if isinstance(error, sa.exc.DBAPIError) else error).split())
                with engine.begin() as connection:
                    become_owner(connection)
                    note_damage = sa.func.ringlog.note_damage("archive", table, message)
                    return str(connection.scalar(sa.select(note_damage)))

        try:
            for number, (table, partition) in enumerate(due, 1):
                line = done(table, partial(_archive, this, table, partition))
                yield line + (f" ({number} of {len(due)})" if len(due) > 1 else "")
            for week in with_late:
                yield done(week.table, partial(_merge_late, this, week))
        except _Stopped:
            return
        with engine.begin() as connection:
            become_owner(connection)
            mended = (damage.c.work == "archive") & damage.c.table_name.not_in(failed)
            connection.execute(damage.delete().where(mended))
        with engine.begin() as connection:
            write_manifest(connection, folder)
        yield from _publish(engine, conninfo)


def _publish(engine: sa.Engine, conninfo: str) -> Iterator[str]:
    """Brings the Iceberg tables up to date, if there are any. Whatever happens, the weeks are archived."""
    with engine.begin() as connection:
        if not iceberg.is_published(connection):
            return
    try:
        yield from iceberg.publish_tables(engine, conninfo)
    except Exception as error:  # of libraries that only this uses
        yield f"the Iceberg tables are not up to date: {' '.join(str(error).split())}"


def _due(connection: sa.Connection, before: datetime, now: datetime) -> list[tuple[str, Partition]]:
    """Partitions that end before `before`, are summarised (of samples: merged) and are not recalled."""
    tables = connection.execute(
        sa.text(
            "select table_name, coalesce(levels, '{}') = '{}' and not is_of_samples as always,"
            " case when is_of_samples then merged_until else until end as until"
            " from ringlog.every_table left join ringlog.summarised using (table_name)"
            " left join ringlog.sample_table using (table_name) order by table_name"
        )
    ).all()
    recalled = {
        (week.table, week.begins)
        for week in manifest(connection)
        if week.recalled_until is not None and week.recalled_until > now
    }
    marks = sa.text(
        "select exists (select from ringlog.summary_mark where table_name = :table"
        " and time >= :start and time < :end)"
    )
    due = []
    for table, always, until in tables:
        for partition in log_partitions(connection, table):
            summarised = always or (until is not None and until >= partition.end)
            if (
                partition.end <= before
                and summarised
                and not any((table, week.start) in recalled for week in _weeks(partition))
                and not connection.scalar(
                    marks, {"table": table, "start": partition.start, "end": partition.end}
                )
            ):
                due.append((table, partition))
    return due


def _weeks(partition: Partition) -> Iterator[Week]:
    week = Week(partition.start)
    while week.start < partition.end:
        yield week
        week = Week(week.end)


def _expired(connection: sa.Connection, now: datetime) -> list[ColdWeek]:
    retention = sa.text(
        "select table_name, cast(:now as timestamptz) - retention::interval as kept from ringlog.every_table"
        " where retention is not null"
    )
    kept_from = {row.table_name: row.kept for row in connection.execute(retention, {"now": now})}
    return [
        week
        for week in manifest(connection)
        if week.table in kept_from and week.ends <= kept_from[week.table] and week.recalled_until is None
    ]


def _tidy(engine: sa.Engine, folder: Folder, there: Mapping[str, float], now: datetime) -> Iterator[str]:
    """Deletes the unfinished files of killed rounds, and files that left the manifest long ago."""
    # a round that has lost its lock may still be writing: its file is recorded for a day
    over = sa.text(
        "select file, left_at is null as begun, case when left_at is null"
        " then begun < cast(:now as timestamptz) - interval '1 day'"
        " else left_at < cast(:now as timestamptz) - keep_replaced::interval end as over"
        " from ringlog.archive_file, ringlog.history order by file"
    )
    with engine.begin() as connection:
        known = manifest(connection)
        recorded = connection.execute(over, {"now": now}).all()
    for file in ownership.put_back(folder, there, known):
        yield f"put back {file}"
    named = {week.file for week in known}
    done = []
    for file, begun, is_over in recorded:
        if file in named:
            done.append(file)
            continue
        if begun or is_over:
            for name in (file, f"{file}.new", aside(file)):
                if name in there:
                    folder.delete(name)
        elif file in there:
            folder.set_aside(file)
        if is_over:
            done.append(file)
            if not begun:
                yield f"deleted {file}, which left the manifest long ago"
    with engine.begin() as connection:
        become_owner(connection)
        connection.execute(archive_file.delete().where(archive_file.c.file.in_(done)))


def _archive(this: _Round, table: str, partition: Partition) -> str:
    name = f"log.{partition.name}"
    with this.engine.begin() as connection:
        facts = about(connection, table)
        before = {week.begins: week for week in manifest(connection, table)}
        of_samples = is_of_samples(connection, table)
    if this.tried(partial(_watch, partition=partition.name, of_samples=of_samples)) is None:
        return f"postponed {name}: its table is in use"
    written = []
    for week in _weeks(partition):
        old = before.get(week.start)
        if old is not None and old.recalled_until is None:
            continue  # it is archived already; the rows in the partition are late ones
        read = partial(_rows_of, this.source, of_samples, sql.Identifier("log", partition.name), week)
        try:
            written.append(this.writer.submit(_write, this, table, week, read, facts).result())
        except BeyondArrow as error:
            return f"{name} stays in PostgreSQL: {error}"
        finally:
            this.source.rollback()
    if this.tried(partial(_view_archive, table=table)) is None:
        return f"postponed {name}: its table is in use"
    try:
        late_rows = this.tried(
            partial(
                _put_away,
                table=table,
                of_samples=of_samples,
                partition=partition.name,
                written=written,
                before=before,
            )
        )
    except _Overtaken:
        return f"postponed {name}: another round has changed the manifest meanwhile"
    if late_rows is None:
        return f"postponed {name}: its table is in use"
    for new in written:
        old = before.get(new.begins)
        if old is not None:
            this.folder.set_aside(old.file)
    size = sum(week.bytes for week in written)
    count = sum(week.rows for week in written)
    line = f"archived {name}: {count} rows, {size} bytes"
    return line + (f", {late_rows} rows came meanwhile" if late_rows else "")


def _write(
    this: _Round,
    table: str,
    week: Week,
    source: Callable[[], Iterator[pa.RecordBatch]],
    facts: dict[str, str],
) -> ColdWeek:
    """Writes the rows of a week to a new file and compares it with them."""
    with this.engine.begin() as connection:
        become_owner(connection)
        name = new_file(connection, this.folder, table, week)
        columns = {} if is_of_samples(connection, table) else fields.of_log(connection, table)
    try:
        return _written(this, name, table, week, source, facts, columns)
    except Exception:
        # the next attempt takes the same name
        with suppress(OSError):
            for each in (name, f"{name}.new"):
                this.folder.delete(each)
        with this.engine.begin() as connection:
            become_owner(connection)
            connection.execute(archive_file.delete().where(archive_file.c.file == name))
        raise


def _written(
    this: _Round,
    name: str,
    table: str,
    week: Week,
    source: Callable[[], Iterator[pa.RecordBatch]],
    facts: dict[str, str],
    columns: dict[str, pa.Field],
) -> ColdWeek:
    with this.folder.created(name) as stream:
        count = files.write(stream, _throttled(this, source()), facts, columns)
    if not files.same(files.read(this.folder, name), _throttled(this, source())):
        raise Damaged(f"{this.folder}/{name} is not what was written to it; nothing was dropped")
    size, digest = this.folder.size(name), this.folder.digest(name)
    return ColdWeek(
        table, week.start, week.end, name, count, size, digest, files.footer(this.folder, name), None
    )


def _throttled(this: _Round, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches, with a pause after each for PostgreSQL's writers. Raises _Stopped."""
    with closing(batches):  # type: ignore[type-var]
        begun = time.monotonic()
        for batch in batches:
            if this.stopped():
                raise _Stopped
            yield batch
            time.sleep(min(this.pauses * (time.monotonic() - begun), _LONGEST_PAUSE))
            begun = time.monotonic()


def _watch(connection: sa.Connection, partition: str, of_samples: bool) -> int:
    """Creates the trigger that records new rows of a partition, after open transactions on it have ended."""
    become_owner(connection)
    noting = sa.text(
        "select exists (select from pg_trigger where tgname = 'record_late_row'"
        " and tgrelid = cast(:partition as regclass))"
    )
    place = sql.Identifier("log", partition)
    if not connection.scalar(noting, {"partition": place.as_string()}):
        run(
            connection,
            sql.SQL(
                "create trigger record_late_row after insert on {}"
                " for each row execute function ringlog.record_late_row({})"
            ).format(place, sql.SQL("'signal'" if of_samples else "")),
        )
    return 0


def _view_archive(connection: sa.Connection, table: str) -> bool:
    """Has the view of a log the archive before the first week leaves: a transaction that has locked the table
    of the log must not wait for the view, whose readers wait for the table."""
    become_owner(connection)
    if archive_tables.is_there(connection, table) and not logs.has_archive(connection, table):
        logs.view_archive(connection, table)
    return True


def _put_away(
    connection: sa.Connection,
    table: str,
    of_samples: bool,
    partition: str,
    written: list[ColdWeek],
    before: dict[datetime, ColdWeek],
) -> int:
    """Enters the weeks in the manifest and drops their partition. Returns the number of rows that stay: those
    that arrived meanwhile, and those of weeks that already have a file. Raises _Overtaken.
    """
    become_owner(connection)
    names = {
        "log": sql.Identifier(LOG_TABLES, table),
        "partition": sql.Identifier("log", partition),
        "name": sql.Literal(partition),
        "table": sql.Literal(table),
        "key": sql.Identifier("signal" if of_samples else "seq_no"),
    }
    run(connection, sql.SQL("lock table only {log} in share row exclusive mode").format(**names))
    there = {week.begins: week for week in manifest(connection, table)}
    if any(there.get(week.begins) != before.get(week.begins) for week in written):
        raise _Overtaken
    run(
        connection,
        sql.SQL(
            """
            create temporary table staying on commit drop as select r.* from {partition} as r
            where exists (
              select from ringlog.late_row as late
              where late.partition = {name} and late."time" = r."time" and late.seq_no = r.{key}
            ) or exists (
              select from ringlog.cold_week as cold
              where cold.table_name = {table} and cold.recalled_until is null
                and r."time" >= cold.begins and r."time" < cold.ends
            )
            """
        ).format(**names),
    )
    if of_samples:
        for week in written:
            _note_last(connection, week, names["partition"])
    run(connection, sql.SQL("drop table {partition}").format(**names))
    stayed = connection.exec_driver_sql("select count(*) from pg_temp.staying").scalar_one()
    if stayed:
        kept = sql.SQL("select * from {} union all select * from pg_temp.staying")
        refill_default(connection, table, kept.format(default_partition(table)))
    connection.execute(late_row.delete().where(late_row.c.partition == partition))
    for week in written:
        note(connection, week)
    return int(stayed)


def _note_last(connection: sa.Connection, week: ColdWeek, relation: sql.Composable) -> None:
    """Notes the newest samples of a relation that become a week's: a signal without later ones has them."""
    run(
        connection,
        sql.SQL(
            """
            insert into ringlog.last_archived as known (number, table_name, "time", value, severity, status)
            select block.signal, {table}, newest.* from (
              select distinct on (signal) * from {relation} where "time" >= {start} and "time" < {end}
              order by signal, "time" desc, times[cardinality(times)] desc
            ) as block
            cross join lateral (
              select each."time", each.value::text, coalesce(each.severity, 0), coalesce(each.status, 0)
              from unnest(block.times, block.samples, block.severities, block.statuses)
                as each ("time", value, severity, status)
              order by each."time" desc
              limit 1
            ) as newest
            on conflict (number) do update
            set "time" = excluded."time", value = excluded.value, severity = excluded.severity,
              status = excluded.status
            where excluded."time" > known."time"
            """
        ).format(
            relation=relation,
            table=sql.Literal(week.table),
            start=sql.Literal(week.begins),
            end=sql.Literal(week.ends),
        ),
    )


def _late_weeks(connection: sa.Connection) -> list[ColdWeek]:
    """Cold weeks with late rows in the log."""
    return [
        week
        for week in manifest(connection)
        if week.recalled_until is None
        and connection.exec_driver_sql(
            sql.SQL('select exists (select from {} where "time" >= {} and "time" < {})')
            .format(default_partition(week.table), sql.Literal(week.begins), sql.Literal(week.ends))
            .as_string(),
            execution_options={"no_parameters": True},
        ).scalar()
    ]


def _merge_late(this: _Round, week: ColdWeek) -> str:
    """Writes a new file of a week with its late rows, and deletes these from the log."""
    try:
        verify(this.folder, week)
    except Damaged as error:
        return f"rows that came for {week.file} stay in the log: {error}"
    with this.engine.begin() as connection:
        of_samples = is_of_samples(connection, week.table)
    try:
        stored = pa.Table.from_batches(
            _stored(this.source, of_samples, default_partition(week.table), Week(week.begins))
        ).combine_chunks()
    except BeyondArrow as error:
        return f"rows that came for {week.file} stay in the log: {error}"
    finally:
        this.source.rollback()
    came = pa.Table.from_batches(samples_of(iter(stored.to_batches()))) if of_samples else stored
    there = late.found(files.read(this.folder, week.file, footer=week.footer), came)
    new = came.filter(pa.array(~(there.repeated | there.conflicting)))
    written = week
    if new.num_rows:
        with this.engine.begin() as connection:
            facts = about(connection, week.table)
        try:
            written = this.writer.submit(
                _write,
                this,
                week.table,
                Week(week.begins),
                lambda: late.merged(files.read(this.folder, week.file, footer=week.footer), new),
                facts,
            ).result()
        except BeyondArrow as error:
            return f"rows that came for {week.file} stay in the log: {error}"
    conflicts = came.filter(pa.array(there.conflicting))
    repeated = came.filter(pa.array(there.repeated))
    keys = stored.select(("time", "signal") if of_samples else KEY)
    done = this.tried(partial(_take_late, week=written, keys=keys, conflicts=conflicts, repeated=repeated))
    if done is None:
        if written is not week:
            this.folder.delete(written.file)
        return f"postponed {written.file}: its table is in use"
    if written is not week:
        this.folder.set_aside(week.file)
    line = f"merged {new.num_rows} late rows into {written.file}, {repeated.num_rows} were there already"
    return line + (
        f", {conflicts.num_rows} in conflict with it: see ringlog.event" if conflicts.num_rows else ""
    )


def _take_late(
    connection: sa.Connection, week: ColdWeek, keys: pa.Table, conflicts: pa.Table, repeated: pa.Table
) -> int:
    """Deletes late rows from the log, which are now in the week's file or refused, and enters them in the
    ledger."""
    become_owner(connection)
    _keep_readers_out(connection, week.table)
    time, other = keys.column_names
    kept = sql.SQL(
        "select * from {} as late where ({}, {}) not in"
        " (select * from unnest({}::timestamptz[], {}::integer[]))"
    )
    place = default_partition(week.table)
    if other != "seq_no":
        _note_last(connection, week, place)
    values = [sql.Literal(keys[name].to_pylist()) for name in (time, other)]
    refill_default(
        connection,
        week.table,
        kept.format(place, sql.Identifier(time), sql.Identifier(other), *values),
    )
    note(connection, week)
    texts = [json.dumps(row, default=str) for row in conflicts.to_pylist()]
    times = conflicts["time"].to_pylist()
    enter(connection, week.table, week.file, [*zip(times, texts, strict=True)], repeated["time"].to_pylist())
    return 0


def _forget(connection: sa.Connection, week: ColdWeek) -> int:
    become_owner(connection)
    _keep_readers_out(connection, week.table)
    forget(connection, week)
    gone = 'delete from ringlog.last_archived where table_name = {} and ringlog.moment("time") < {}'
    run(connection, sql.SQL(gone).format(sql.Literal(week.table), sql.Literal(week.ends)))
    note_dropped(connection, week.table, week.ends)
    return 0


def _keep_readers_out(connection: sa.Connection, table: str) -> None:
    """Waits until no reader uses the previous manifest: see ringlog.history.reading."""
    log_table = sql.Identifier(LOG_TABLES, table)
    run(connection, sql.SQL("lock table only {} in access exclusive mode").format(log_table))


def _stored(
    source: Connection, of_samples: bool, relation: sql.Identifier, week: Week
) -> Iterator[pa.RecordBatch]:
    """The rows, or the blocks of samples, of a week in a partition."""
    columns, order = (BLOCK, 'signal, "time"') if of_samples else (sql.SQL("*"), '"time", seq_no')
    query = sql.SQL('select {} from {} where "time" >= {} and "time" < {} order by {}').format(
        columns, relation, sql.Literal(week.start), sql.Literal(week.end), sql.SQL(order)
    )
    return rows(source, query)


def _rows_of(
    source: Connection, of_samples: bool, relation: sql.Identifier, week: Week
) -> Iterator[pa.RecordBatch]:
    """The rows or samples of a week in a partition, as its file has them."""
    stored = _stored(source, of_samples, relation, week)
    return samples_of(stored) if of_samples else stored
