"""Copies the rows of a site's own tables: each table as a whole, compared value by value.

The old server runs meanwhile: each table is read once, and a later run replaces its rows by those of that
time. Triggers do not fire for the rows, and foreign keys are checked when all tables have been copied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from ringlog.adoption.conversion.tables import ROW_VERSIONS
from ringlog.adoption.rows.arriving import ARRIVED, OldSession, Row, digest_of, names_of, sessions, stage, why
from ringlog.adoption.rows.composites import compared
from ringlog.adoption.rows.composites import stored as stored_as
from ringlog.adoption.rows.copier import copier
from ringlog.adoption.rows.source import Source
from ringlog.adoption.rows.threads import in_threads
from ringlog.adoption.server.objects import OldColumn, OldTable
from ringlog.adoption.server.texts import Unreadable, reading
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

_MOST_UNREAD = 5  # texts that cannot be read, reported of a table


@dataclass(frozen=True)
class SiteCopied:
    """The result of copying a table."""

    table: str
    rows: int
    is_new: bool
    """the rows here have changed"""
    same: bool
    unread: tuple[str, ...] = ()
    """rows that were left out, with the reason"""
    missing: str = ""
    """why it cannot be copied"""


def copy_site(
    source: Source,
    conninfo: str,
    database: str,
    tables: Sequence[OldTable],
    connections: int,
    report: Callable[[SiteCopied], None],
) -> list[SiteCopied]:
    """Copies the tables into the schema. Raises OldServerError and psycopg.Error."""

    def work(waiting: Iterator[OldTable]) -> Iterator[SiteCopied]:
        with sessions(source, limited) as (old, new):
            # no trigger fires and no foreign key is checked row by row
            new.execute("set session_replication_role to replica")
            for table in waiting:
                yield _tried(old, new, table, database, source)

    largest_first = sorted(tables, key=lambda table: -table.bytes)
    with copier(conninfo, database) as limited:
        return in_threads(largest_first, connections, work, report)


def _tried(
    old: OldSession, new: psycopg.Connection[Any], table: OldTable, database: str, source: Source
) -> SiteCopied:
    """A table that cannot be copied does not prevent the copy of others."""
    try:
        return _copy(old, new, table, database, source)
    except psycopg.Error as error:
        if new.broken:
            raise
        return SiteCopied(table.name, 0, False, False, (), why(error))
    except Unreadable as error:
        return SiteCopied(table.name, 0, False, False, (), f"the old server's rows: {error}")


def _copy(
    old: OldSession, new: psycopg.Connection[Any], table: OldTable, database: str, source: Source
) -> SiteCopied:
    here = sql.Identifier(database, table.name.lower())
    existing = _columns_here(new, database, table.name.lower())
    wanted = [column for column in table.columns if column.type not in ROW_VERSIONS]
    columns = [column for column in wanted if existing.get(column.name.lower(), "") == ""]
    if lost := [column.name for column in wanted if column.name.lower() not in existing]:
        what = f"has no column {lost[0]}" if existing else "is not there: run 1_tables.sql"
        return SiteCopied(table.name, 0, False, False, (), f"{database}.{table.name} {what}")
    readings = [reading(column, source.charset, source.is_ase) for column in columns]
    query = f"select {', '.join(of.expression for of in readings)} from {table.qualified_name}"
    names = [column.name.lower() for column in columns]
    back = sql.SQL("select {} from {}").format(
        sql.SQL(", ").join(compared(column.type, sql.Identifier(column.name.lower())) for column in columns),
        here,
    )
    unread: list[str] = []

    def received() -> Iterator[Row]:
        for row in old.rows(query):
            try:
                values = tuple(of.value(each) for of, each in zip(readings, row, strict=True))
            except Unreadable as error:
                unread.append(f"{table.name}, {_key(table, columns, row)}: {error}")
            else:
                yield values

    def stored(row: Row) -> Iterator[object]:
        return (stored_as(column.type, each) for column, each in zip(columns, row, strict=True))

    with new.transaction():
        came = stage(new, here, names, received(), stored)
        before = after = digest_of(new, back)
        is_new = before.text() != came.text()
        if is_new:
            new.execute(sql.SQL("delete from {}").format(here))
            new.execute(
                sql.SQL("insert into {} ({names}) overriding system value select {names} from {}").format(
                    here, ARRIVED, names=names_of(names)
                )
            )
            after = digest_of(new, back)
        for column in columns:
            if column.identity is not None:
                _continue_identity(new, here, column)
    more = [f"{table.name}: {len(unread)} rows in all"] if len(unread) > _MOST_UNREAD else []
    same = after.text() == came.text()
    return SiteCopied(table.name, came.rows, is_new, same, (*unread[:_MOST_UNREAD], *more))


def _columns_here(new: psycopg.Connection[Any], database: str, table: str) -> dict[str, str]:
    """The columns of a table here, each with how it is computed, if it is."""
    found = new.execute(
        "select attname, attgenerated::text from pg_attribute"
        " where attrelid = to_regclass(format('%%I.%%I', %s::text, %s::text))"
        " and attnum > 0 and not attisdropped",
        [database, table],
    )
    return {str(name): str(generated) for name, generated in found}


def _key(table: OldTable, columns: Sequence[OldColumn], row: Sequence[Any]) -> str:
    """A row's key, or its first column, for a message."""
    names = table.keys[0] if table.keys else (columns[0].name,)
    return ", ".join(
        f"{column.name} {value!r}" for column, value in zip(columns, row, strict=True) if column.name in names
    )


def _continue_identity(new: psycopg.Connection[Any], table: sql.Identifier, column: OldColumn) -> None:
    """Continues an identity after the last value that the old server generated, or that is stored."""
    name = column.name.lower()
    falls = column.identity is not None and column.identity[1] < 0
    new.execute(
        sql.SQL(
            "select setval(pg_get_serial_sequence({table_text}, {name_text}), last.value)"
            " from (select {further}({extreme}({name}), {last}::bigint) as value from {table}) as last"
            " where last.value is not null"
        ).format(
            table_text=sql.Literal(table.as_string(None)),
            name_text=sql.Literal(name),
            name=sql.Identifier(name),
            further=sql.SQL("least" if falls else "greatest"),
            extreme=sql.SQL("min" if falls else "max"),
            last=sql.Literal(column.last),
            table=table,
        )
    )


def unreferenced(conninfo: str, database: str) -> list[str]:
    """The foreign keys with rows that refer to no row, because the old server was changed meanwhile."""
    with copier(conninfo, database) as limited, session.connect(limited) as new:
        found = new.execute(sql_file(__file__, "site_rows_unreferenced"), [database]).fetchall()
        broken = []
        for name, table, other, given, same in found:
            lacking = f"not exists (select from {other} b where {same})"
            row = new.execute(
                f"select count(*) from {table} a where {given} and {lacking}".encode()
            ).fetchone()
            if row and row[0]:
                broken.append(f"{row[0]} rows of {table} refer to no row of {other} ({name}): copy once more")
    return broken
