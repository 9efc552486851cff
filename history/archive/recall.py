"""Recalls cold weeks into the log, as partitions, by COPY."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.manifest import ColdWeek, default_partition, manifest, settings, verify
from ringlog.history.archive.parquet import files, late
from ringlog.history.archive.round import keep_readers_out
from ringlog.history.archive.stored import Rows, stored
from ringlog.history.connection import Connection, connect, rows
from ringlog.schema import session
from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import columns
from ringlog.schema.change import change
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import LOG_TABLES, OWNER
from ringlog.schema.relations.dropping import drop_rows
from ringlog.schema.relations.partitions import PARTITION_OPTIONS, Week, alone
from ringlog.schema.relations.statistics import turn_off as turn_off_statistics

_PATIENCE = 60.0  # seconds
_PAUSE = 0.5


class InUse(RuntimeError):
    """A transaction that began before the copy keeps a week from the log: it would see no row of it."""

    def __init__(self, who: str) -> None:
        super().__init__(f"a recalled week waits for transactions that began before, and {who} does not end")


def recall(conninfo: str, table: str, start: datetime, end: datetime, keep: timedelta) -> Iterator[str]:
    """Brings cold weeks back into the log for the time `keep`. Raises Damaged or InUse at the first that it
    cannot."""
    with alone(conninfo), closing(connect(conninfo)) as target:
        with session.connect(conninfo) as connection:
            chosen = settings(connection)
            weeks = [
                week
                for week in manifest(connection, table)
                if week.begins < end and week.ends > start and week.recalled_until is None
            ]
        if chosen is None:
            return
        folder = Folder(chosen[1])
        for week in weeks:
            verify(folder, week)
            name = Week(week.begins).partition(table)
            with session.connect(conninfo) as connection:
                stores = stored(connection, table)
            change(conninfo, partial(_make, week=week, name=name, stores=stores))
            _copy(target, stores.copied(name), files.read(folder, week.file, footer=week.footer))
            change(conninfo, partial(_finish, table=table, name=name, stores=stores))
            _show_to_all(conninfo, name)
            change(conninfo, partial(_bring_back, week=week, name=name, until=keep, stores=stores))
            yield f"recalled {week.file}: {week.rows} rows in log.{name}"


def _copy(target: Connection, name: str, batches: Iterator[pa.RecordBatch]) -> None:
    """Copies rows in the present types of their columns: COPY would misread other types of the same
    length."""
    nothing = sql.SQL("select * from {} limit 0").format(sql.Identifier("log", name))
    (empty,) = rows(target, nothing)
    target.rollback()
    cast = (each for batch in batches for each in late.cast(empty.schema, batch).to_batches())
    reader = pa.RecordBatchReader.from_batches(empty.schema, cast)
    with target.streams.cursor() as cursor:
        cursor.adbc_ingest(name, reader, mode="append", db_schema_name="log")
    target.streams.commit()


def _make(connection: psycopg.Connection, week: ColdWeek, name: str, stores: Rows) -> None:
    """Makes the table of a week, with text for numerics, which ADBC does not copy."""
    become_owner(connection)
    drop_rows(connection, "log", name)
    connection.execute(
        sql.SQL(
            'create table {} (like {} including all, constraint week check ("time" >= {} and "time" < {}))'
            " with ({})"
        ).format(
            sql.Identifier("log", name),
            sql.Identifier(LOG_TABLES, week.table),
            sql.Literal(week.begins),
            sql.Literal(week.ends),
            PARTITION_OPTIONS,
        )
    )
    _change_types(connection, name, dict.fromkeys(_numerics(connection, week.table), "text"))
    stores.make_copied(connection, week.table, name)


def _numerics(connection: psycopg.Connection, table: str) -> dict[str, str]:
    """The numeric columns of a log, with their types."""
    stored = columns(connection, sql.Identifier(LOG_TABLES, table))
    types = {column: ColumnType.of_postgresql(kind) for column, kind in stored.items()}
    return {column: kind.sql for column, kind in types.items() if kind and kind.kind is Kind.NUMERIC}


def _change_types(connection: psycopg.Connection, name: str, types: Mapping[str, str]) -> None:
    if types:
        changes = sql.SQL(", ").join(
            sql.SQL("alter column {0} type {1} using {0}::{1}").format(sql.Identifier(column), sql.SQL(kind))
            for column, kind in types.items()
        )
        connection.execute(sql.SQL("alter table {} {}").format(sql.Identifier("log", name), changes))


def _finish(connection: psycopg.Connection, table: str, name: str, stores: Rows) -> None:
    become_owner(connection)
    stores.take_copied(connection, table, name)
    _change_types(connection, name, _numerics(connection, table))


def _show_to_all(conninfo: str, name: str) -> None:
    """Makes the rows of a week's table visible to all snapshots, also of earlier transactions: the week
    leaves the archive for all of them. Raises InUse when an earlier transaction does not end."""
    relation = sql.Identifier("log", name)
    seen = "select from pg_class where oid = %s::regclass and relpages <= relallvisible"
    end = time.monotonic() + _PATIENCE
    with session.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        while True:
            connection.execute(sql.SQL("vacuum (freeze) {}").format(relation))
            if connection.execute(seen, [relation.as_string()]).rowcount:
                return
            if time.monotonic() > end:
                oldest = connection.execute(_OLDEST).fetchone()
                raise InUse(oldest[0] if oldest else "a transaction")
            time.sleep(_PAUSE)


_OLDEST = """
select format('process %s, login %s, in a transaction since %s', pid, usename, xact_start)
from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid()
order by age(backend_xmin) desc limit 1
"""


def _bring_back(
    connection: psycopg.Connection, week: ColdWeek, name: str, until: timedelta, stores: Rows
) -> None:
    become_owner(connection)
    names = {
        "log": sql.Identifier(LOG_TABLES, week.table),
        "partition": sql.Identifier("log", name),
        "late": default_partition(week.table),
        "start": sql.Literal(week.begins),
        "end": sql.Literal(week.ends),
    }
    counted = sql.SQL("select {} from {partition}").format(sql.SQL(stores.count), **names)
    ((count,),) = connection.execute(counted).fetchall()
    if count != week.rows:
        raise Damaged(f"log.{name} has {count} rows after the copy, not {week.rows}")
    # the lock excludes readers too: see make_week
    keep_readers_out(connection, week.table)
    # marks late rows that arrived while the week was in the archive: see make_week
    marked = "select ringlog.mark_summaries({table}, {relation}, {start}, {end})"
    came = {"table": sql.Literal(week.table), "relation": sql.Literal(names["late"].as_string())}
    connection.execute(sql.SQL(marked).format(**names | came))
    stores.take_late(connection, week.table, week.file, names)
    for statement in (
        'delete from {late} where "time" >= {start} and "time" < {end}',
        "alter table {log} attach partition {partition} for values from ({start}) to ({end})",
        "alter table {partition} drop constraint week",
    ):
        connection.execute(sql.SQL(statement).format(**names))
    turn_off_statistics(connection, week.table, name)
    connection.execute(
        "update ringlog.cold_week set recalled_until = now() + %s where table_name = %s and begins = %s",
        [until, week.table, week.begins],
    )
