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

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from functools import partial

import psycopg
from psycopg import sql

from ringlog.history import priority
from ringlog.history.archive import iceberg, ownership
from ringlog.history.archive.folder import Damaged, Folder, aside
from ringlog.history.archive.leaving import archive_partition, weeks_of
from ringlog.history.archive.manifest import ColdWeek, forget, manifest, settings, write_manifest
from ringlog.history.archive.merging import late_weeks, merge_late
from ringlog.history.archive.rewriting import old_weeks, rewrite_week
from ringlog.history.archive.round import NotDone, Round, Stopped, keep_readers_out
from ringlog.history.connection import ReadError, connect
from ringlog.schema import clock, session
from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import MAY_LOOK, has_pages
from ringlog.schema.relations.partitions import Partition, alone, log_partitions
from ringlog.schema.relations.tiers import note_dropped

PAUSES = 1.0
"""Reading the log pauses as long as it works, which leaves disk and processors to writers."""


def archive(
    conninfo: str,
    now: datetime | None = None,
    stopped: Callable[[], bool] = lambda: False,
    *,
    pauses: float = PAUSES,
    rewrites: bool = False,
) -> Generator[str, None, bool]:
    """Sets aside weeks past retention, archives old weeks, merges late rows, and deletes files whose time
    set aside is over. Yields a line for each. Returns whether nothing failed, was postponed or must stay.

    `now` is by default PostgreSQL's clock, if the last round of housekeeping trusted it
    (ringlog.schema.clock). `stopped` is called between the steps, and while another process maintains the
    logs: raises partitions.Stopped when it returns true. `pauses`: seconds of rest for each second of
    reading; unless it is 0, reading and writing also have the lowest priority on the machine. `rewrites`:
    also writes files of earlier forms again. A week with a
    damaged file is reported and keeps its file and its late rows; a week with a value that Arrow cannot
    represent is reported and stays in PostgreSQL. Raises ownership.NotOurs when the folder is another
    database's, or has none of the files of this one.
    """
    lowered = priority.lower_thread if pauses else None
    with (
        alone(conninfo, stopped) as lock,
        closing(connect(conninfo)) as source,
        ThreadPoolExecutor(1, "archive", initializer=lowered) as writer,
    ):
        if pauses:
            priority.lower_backend(source.streams)
        with session.connect(conninfo) as connection:
            chosen = settings(connection)
            moment = now or clock.read(connection).trusted
            known = manifest(connection)
        if chosen is None:
            return True
        folder = Folder(chosen[1])
        there = dict(folder.names())
        with session.connect(conninfo) as connection:
            ownership.demand(connection, folder, there, known)
        # first, because deleting may free the disk space that the rest needs
        yield from _tidy(conninfo, folder, there, moment)
        ownership.claim(conninfo, folder)
        this = Round(conninfo, lock, source, folder, stopped, pauses, writer)
        with session.connect(conninfo) as connection:
            expired = _expired(connection, moment)
        steps = _Steps(this)
        for week in expired:
            yield steps.done(week.table, partial(_expire, this, week))
        with session.connect(conninfo) as connection:
            due = _due(connection, moment - chosen[0], moment)
            with_late = late_weeks(connection)
        try:
            for number, (table, partition) in enumerate(due, 1):
                line = steps.done(table, partial(archive_partition, this, table, partition))
                yield line + (f" ({number} of {len(due)})" if len(due) > 1 else "")
            for week in with_late:
                yield steps.done(week.table, partial(merge_late, this, week))
            for week in old_weeks(this) if rewrites else []:
                yield steps.done(week.table, partial(rewrite_week, this, week))
        except Stopped:
            return False
        with session.connect(conninfo) as connection:
            become_owner(connection)
            repaired = "delete from ringlog.damage where work = 'archive' and table_name <> all(%s)"
            connection.execute(repaired, [[*steps.failed]])
        with session.connect(conninfo) as connection:
            write_manifest(connection, folder)
        return (yield from _publish(conninfo)) and steps.complete


class _Steps:
    """The steps of a round: after one that fails the others are still done."""

    def __init__(self, this: Round) -> None:
        self._round = this
        self.complete = True
        self.failed: set[str] = set()
        """tables with damage"""

    def done(self, table: str, work: Callable[[], str]) -> str:
        """The line of a step."""
        try:
            return work()
        except NotDone as error:
            self.complete = False
            return str(error)
        except (ReadError, Damaged, psycopg.Error) as error:
            self._round.lock.execute("select 1")  # raises if PostgreSQL has stopped
            self.complete = False
            self.failed.add(table)
            message = " ".join(str(error).split())
            with session.connect(self._round.conninfo) as connection:
                become_owner(connection)
                note_damage = "select ringlog.note_damage('archive', %s, %s)"
                ((line,),) = connection.execute(note_damage, [table, message]).fetchall()
                return str(line)


def _publish(conninfo: str) -> Generator[str, None, bool]:
    """Updates the Iceberg tables, if there are any. Their errors do not affect the archived weeks. Returns
    whether there was none."""
    with session.connect(conninfo) as connection:
        if not iceberg.is_published(connection):
            return True
    try:
        yield from iceberg.publish_tables(conninfo)
    except Exception as error:  # of libraries that only this uses
        yield f"the Iceberg tables are not up to date: {' '.join(str(error).split())}"
        return False
    return True


def _due(connection: psycopg.Connection, before: datetime, now: datetime) -> list[tuple[str, Partition]]:
    """Partitions that end before `before`, are not recalled, and are summarised, of samples also merged, or
    never had a row."""
    tables = connection.execute(
        "select table_name, coalesce(levels, '{}') <> '{}', until, is_of_samples, merged_until"
        " from ringlog.every_table left join ringlog.summarised using (table_name)"
        " left join ringlog.sample_table using (table_name) order by table_name"
    ).fetchall()
    recalled = {
        (week.table, week.begins)
        for week in manifest(connection)
        if week.recalled_until is not None and week.recalled_until > now
    }
    marks = "select from ringlog.summary_mark where table_name = %s and time >= %s and time < %s limit 1"
    may_look = connection.execute(MAY_LOOK).fetchone() == (True,)
    written = f"select where {has_pages('%s::regclass', may_look)}".encode()
    due = []
    for table, has_summaries, until, is_of_samples, merged in tables:
        needed = [*([until] if has_summaries else []), *([merged] if is_of_samples else [])]
        for partition in log_partitions(connection, table):
            is_ready = all(reached is not None and reached >= partition.end for reached in needed)
            relation = sql.Identifier("log", partition.name).as_string()
            if (
                partition.end <= before
                # of a table that nobody writes there are no summaries
                and (is_ready or not connection.execute(written, [relation]).rowcount)
                and not any((table, week.start) in recalled for week in weeks_of(partition))
                and not connection.execute(marks, [table, partition.start, partition.end]).rowcount
            ):
                due.append((table, partition))
    return due


def _expired(connection: psycopg.Connection, now: datetime) -> list[ColdWeek]:
    retention = (
        "select table_name, %s - retention::interval from ringlog.every_table where retention is not null"
    )
    kept_from: dict[str, datetime] = dict(connection.execute(retention, [now]).fetchall())
    return [
        week
        for week in manifest(connection)
        if week.table in kept_from and week.ends <= kept_from[week.table] and week.recalled_until is None
    ]


def _tidy(conninfo: str, folder: Folder, there: Mapping[str, float], now: datetime) -> Iterator[str]:
    """Deletes the unfinished files of killed rounds, and files that left the manifest long ago."""
    # a round that has lost its lock may still be writing: its file is recorded for a day
    over = (
        "select file, left_at is null as begun, case when left_at is null"
        " then begun < %(now)s - interval '1 day'"
        " else left_at < %(now)s - keep_replaced::interval end as over"
        " from ringlog.archive_file, ringlog.history order by file"
    )
    with session.connect(conninfo) as connection:
        known = manifest(connection)
        recorded = connection.execute(over, {"now": now}).fetchall()
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
    with session.connect(conninfo) as connection:
        become_owner(connection)
        connection.execute("delete from ringlog.archive_file where file = any(%s)", [done])


def _expire(this: Round, week: ColdWeek) -> str:
    """Sets aside the file of a week past retention. Returns a line on it. Raises NotDone."""
    if this.tried(partial(_forget, week=week)) is None:
        raise NotDone(f"postponed {week.file}, which is past retention: its table is in use")
    this.folder.set_aside(week.file)
    return f"set aside {week.file}: past retention"


def _forget(connection: psycopg.Connection, week: ColdWeek) -> int:
    become_owner(connection)
    keep_readers_out(connection, week.table)
    forget(connection, week)
    gone = 'delete from ringlog.last_archived where table_name = {} and ringlog.moment("time") < {}'
    connection.execute(sql.SQL(gone).format(sql.Literal(week.table), sql.Literal(week.ends)))
    note_dropped(connection, week.table, week.ends)
    return 0
