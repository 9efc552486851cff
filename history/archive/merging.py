"""Rows that arrived late for archived weeks are merged into new files of them."""

import json
from functools import partial

import psycopg
import pyarrow as pa
from psycopg import sql

from ringlog.history.archive.books import enter
from ringlog.history.archive.folder import Damaged
from ringlog.history.archive.manifest import (
    ColdWeek,
    default_partition,
    manifest,
    note,
    refill_default,
    verify,
)
from ringlog.history.archive.parquet import files, late
from ringlog.history.archive.round import NotDone, Round, keep_readers_out
from ringlog.history.archive.stored import Rows, stored
from ringlog.history.connection import BeyondArrow
from ringlog.schema.access.roles import become_owner
from ringlog.schema.relations.partitions import Week
from ringlog.schema.session import connect


def late_weeks(connection: psycopg.Connection) -> list[ColdWeek]:
    """Cold weeks with late rows in the log."""
    return [
        week
        for week in manifest(connection)
        if week.recalled_until is None
        and connection.execute(
            sql.SQL('select from {} where "time" >= {} and "time" < {} limit 1').format(
                default_partition(week.table), sql.Literal(week.begins), sql.Literal(week.ends)
            )
        ).rowcount
    ]


def merge_late(this: Round, week: ColdWeek) -> str:
    """Writes a new file of a week with its late rows, which leave the log. Returns a line on it. Raises
    NotDone, ReadError, Damaged."""
    try:
        verify(this.folder, week)
    except Damaged as error:
        raise NotDone(f"rows that arrived for {week.file} stay in the log: {error}") from error
    with connect(this.conninfo) as connection:
        stores = stored(connection, week.table)
    try:
        read = stores.read(this.source, default_partition(week.table), Week(week.begins))
        in_log = pa.Table.from_batches(read).combine_chunks()
    except BeyondArrow as error:
        raise NotDone(f"rows that arrived for {week.file} stay in the log: {error}") from error
    finally:
        this.source.rollback()
    came = pa.Table.from_batches(stores.filed(iter(in_log.to_batches())))
    there = late.found(files.read(this.folder, week.file, footer=week.footer), came)
    new = came.filter(pa.array(~(there.repeated | there.conflicting)))
    written = week
    if new.num_rows:
        try:
            written = this.write(
                stores,
                week.table,
                Week(week.begins),
                lambda: late.merged(files.read(this.folder, week.file, footer=week.footer), new),
            )
        except BeyondArrow as error:
            raise NotDone(f"rows that arrived for {week.file} stay in the log: {error}") from error
    conflicts = came.filter(pa.array(there.conflicting))
    repeated = came.filter(pa.array(there.repeated))
    keys = in_log.select(("time", stores.key))
    take = partial(_take_late, stores=stores, week=written, keys=keys, conflicts=conflicts, repeated=repeated)
    done = this.tried(take)
    if done is None:
        if written is not week:
            this.folder.delete(written.file)
        raise NotDone(f"postponed {written.file}: its table is in use")
    if written is not week:
        this.folder.set_aside(week.file)
    line = f"merged {new.num_rows} late rows into {written.file}, {repeated.num_rows} were there already"
    return line + (
        f", {conflicts.num_rows} in conflict with it: see ringlog.event" if conflicts.num_rows else ""
    )


def _take_late(
    connection: psycopg.Connection,
    stores: Rows,
    week: ColdWeek,
    keys: pa.Table,
    conflicts: pa.Table,
    repeated: pa.Table,
) -> int:
    """Deletes late rows from the log, which are now in the week's file or refused, and enters them in the
    ledger."""
    become_owner(connection)
    keep_readers_out(connection, week.table)
    time, other = keys.column_names
    kept = sql.SQL(
        "select * from {} as late where ({}, {}) not in"
        " (select * from unnest({}::timestamptz[], {}::integer[]))"
    )
    default = default_partition(week.table)
    stores.note_newest(connection, week, default)
    values = [sql.Literal(keys[name].to_pylist()) for name in (time, other)]
    refill_default(
        connection, week.table, kept.format(default, sql.Identifier(time), sql.Identifier(other), *values)
    )
    note(connection, week)
    texts = [json.dumps(row, default=str) for row in conflicts.to_pylist()]
    times = conflicts["time"].to_pylist()
    enter(connection, week.table, week.file, [*zip(times, texts, strict=True)], repeated["time"].to_pylist())
    return 0
