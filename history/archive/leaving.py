"""Old weeks leave PostgreSQL: those of a partition become files, and the partition is dropped."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import psycopg
from psycopg import sql

from ringlog.history.archive.manifest import ColdWeek, default_partition, manifest, note, refill_default
from ringlog.history.archive.round import NotDone, Round
from ringlog.history.archive.stored import Rows, stored
from ringlog.history.connection import BeyondArrow, Connection, run
from ringlog.schema.access.roles import become_owner
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.relations import archive_tables, logs
from ringlog.schema.relations.dropping import drop_rows
from ringlog.schema.relations.partitions import Partition, Week
from ringlog.schema.session import connect
from ringlog.schema.sql_files import sql_file


class _Overtaken(Exception):
    """Another round changed the manifest after this one read the rows."""


def archive_partition(this: Round, table: str, partition: Partition) -> str:
    """Archives the weeks of a partition. Returns a line on it. Raises NotDone, ReadError, Damaged."""
    name = f"log.{partition.name}"
    with connect(this.conninfo) as connection:
        before = {week.begins: week for week in manifest(connection, table)}
        stores = stored(connection, table)
        is_empty = _is_empty(connection, partition)
    if is_empty and not any(week.start in before for week in weeks_of(partition)):
        if this.tried(partial(_drop_empty, table=table, partition=partition)) is None:
            raise NotDone(f"postponed {name}: its table is in use")
        return f"dropped {name}, which has no rows"
    if this.tried(partial(_watch, partition=partition.name, key=stores.key)) is None:
        raise NotDone(f"postponed {name}: its table is in use")
    written = []
    for week in weeks_of(partition):
        old = before.get(week.start)
        if old is not None and old.recalled_until is None:
            continue  # it is archived already; the rows in the partition are late ones
        source = partial(stores.read_filed, this.source, sql.Identifier("log", partition.name), week)
        try:
            this.source.begin_snapshot()
            _unmark(this.source, partition.name, week)
            written.append(this.write(stores, table, week, source))
            this.source.commit()
        except BeyondArrow as error:
            raise NotDone(f"{name} stays in PostgreSQL: {error}") from error
        finally:
            this.source.rollback()
    if this.tried(partial(show_archive, table=table)) is None:
        raise NotDone(f"postponed {name}: its table is in use")
    try:
        late_rows = this.tried(
            partial(
                _put_away,
                table=table,
                stores=stores,
                partition=partition.name,
                written=written,
                before=before,
            )
        )
    except _Overtaken:
        raise NotDone(f"postponed {name}: another round has changed the manifest meanwhile") from None
    if late_rows is None:
        raise NotDone(f"postponed {name}: its table is in use")
    for new in written:
        old = before.get(new.begins)
        if old is not None:
            this.folder.set_aside(old.file)
    size = sum(week.bytes for week in written)
    count = sum(week.rows for week in written)
    line = f"archived {name}: {count} rows, {size} bytes"
    return line + (f", {late_rows} rows arrived meanwhile" if late_rows else "")


def _is_empty(connection: psycopg.Connection, partition: Partition) -> bool:
    first = sql.SQL("select from {} limit 1").format(sql.Identifier("log", partition.name))
    return connection.execute(first).rowcount == 0


def _drop_empty(connection: psycopg.Connection, table: str, partition: Partition) -> int:
    """Drops a partition, which needs no file: rows of its time go into the default partition."""
    become_owner(connection)
    log = sql.Identifier(LOG_TABLES, table)
    connection.execute(sql.SQL("lock table only {} in share row exclusive mode").format(log))
    if not _is_empty(connection, partition):
        raise NotDone(f"postponed log.{partition.name}: rows came meanwhile")
    drop_rows(connection, "log", partition.name)
    return 0


def weeks_of(partition: Partition) -> Iterator[Week]:
    week = Week(partition.start)
    while week.start < partition.end:
        yield week
        week = Week(week.end)


def _watch(connection: psycopg.Connection, partition: str, key: str) -> int:
    """Creates the trigger that records new rows of a partition, after open transactions on it have ended."""
    become_owner(connection)
    noting = "select from pg_trigger where tgname = 'record_late_row' and tgrelid = %s::regclass"
    identifier = sql.Identifier("log", partition)
    if not connection.execute(noting, [identifier.as_string()]).rowcount:
        connection.execute(
            sql.SQL(
                "create trigger record_late_row after insert on {}"
                " for each row execute function ringlog.record_late_row({})"
            ).format(identifier, sql.Literal(key))
        )
    return 0


def _unmark(source: Connection, partition: str, week: Week) -> None:
    """Deletes the marks of late rows in the source's snapshot, since the week's file gets these rows. Later
    marks are of rows that the file does not have."""
    marks = 'delete from ringlog.late_row where partition = {} and "time" >= {} and "time" < {}'
    run(source, sql.SQL(marks).format(sql.Literal(partition), sql.Literal(week.start), sql.Literal(week.end)))


def show_archive(connection: psycopg.Connection, table: str) -> bool:
    """Adds the archive to the view of a log before the first week leaves: a transaction that has locked the
    log's table must not wait for the view, whose readers wait for the table."""
    become_owner(connection)
    if archive_tables.is_there(connection, table) and not logs.has_archive(connection, table):
        logs.view_archive(connection, table)
    return True


def _put_away(
    connection: psycopg.Connection,
    table: str,
    stores: Rows,
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
        "key": sql.Identifier(stores.key),
    }
    connection.execute(sql.SQL("lock table only {log} in share row exclusive mode").format(**names))
    there = {week.begins: week for week in manifest(connection, table)}
    if any(there.get(week.begins) != before.get(week.begins) for week in written):
        raise _Overtaken
    connection.execute(sql.SQL(sql_file(__file__, "leaving_put_away")).format(**names))
    for week in written:
        stores.note_newest(connection, week, sql.Identifier("log", partition))
    drop_rows(connection, "log", partition)
    ((stayed,),) = connection.execute("select count(*) from pg_temp.staying").fetchall()
    if stayed:
        kept = sql.SQL("select * from {} union all select * from pg_temp.staying")
        refill_default(connection, table, kept.format(default_partition(table)))
    connection.execute("delete from ringlog.late_row where partition = %s", [partition])
    for week in written:
        note(connection, week)
    return int(stayed)
