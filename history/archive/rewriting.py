"""Weeks whose files an earlier version wrote are written again in the present form: smaller, without
statistics of floats, and with few rows in the first and last row group."""

from functools import partial

import psycopg
import pyarrow.parquet as pq

from ringlog.history.archive.folder import Damaged
from ringlog.history.archive.manifest import ColdWeek, manifest, note, verify
from ringlog.history.archive.parquet import files
from ringlog.history.archive.round import NotDone, Round, keep_readers_out
from ringlog.history.archive.stored import stored
from ringlog.schema.access.roles import become_owner
from ringlog.schema.relations.partitions import Week
from ringlog.schema.session import connect


def old_weeks(this: Round) -> list[ColdWeek]:
    """Cold weeks whose files have an earlier form. A recalled week gets another file when it leaves again."""
    with connect(this.conninfo) as connection:
        weeks = [week for week in manifest(connection) if week.rows and week.recalled_until is None]
    return [week for week in weeks if not _has_present_form(this, week)]


def _has_present_form(this: Round, week: ColdWeek) -> bool:
    try:
        with this.folder.opened(week.file) as stream:
            return (pq.read_metadata(stream).metadata or {}).get(files.FORM) == files.PRESENT_FORM
    except (Damaged, OSError, ValueError):
        return False  # rewrite_week has the error


def rewrite_week(this: Round, week: ColdWeek) -> str:
    """Writes a week's file again, with the same rows, columns and field ids. Returns a line on it. Raises
    NotDone, ReadError, Damaged."""
    verify(this.folder, week)
    with this.folder.opened(week.file) as stream:
        schema = pq.read_schema(stream)
    with connect(this.conninfo) as connection:
        stores = stored(connection, week.table)
    source = partial(files.read, this.folder, week.file, footer=week.footer)
    written = this.write(stores, week.table, Week(week.begins), source, schema)
    if not this.tried(partial(_replace, old=week, new=written)):
        this.folder.delete(written.file)
        raise NotDone(f"postponed {week.file}: its table is in use")
    this.folder.set_aside(week.file)
    return f"rewrote {week.file} as {written.file}: {week.bytes} bytes, now {written.bytes}"


def _replace(connection: psycopg.Connection, old: ColdWeek, new: ColdWeek) -> bool:
    become_owner(connection)
    keep_readers_out(connection, old.table)
    note(connection, new)
    return True
