"""Copies the rows of a site's own tables: each table as a whole, compared value by value.

The old server runs meanwhile: each table is read once, and a later run replaces its rows by those of that
time. Triggers do not fire for the rows, and foreign keys are checked when all tables have been copied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pymssql
from psycopg import sql

from ringlog.adoption.conversion.tables import ROW_VERSIONS
from ringlog.adoption.rows.composites import compared
from ringlog.adoption.rows.composites import stored as stored_as
from ringlog.adoption.rows.copier import copier
from ringlog.adoption.rows.copying import Source
from ringlog.adoption.rows.digest import Digest
from ringlog.adoption.rows.threads import in_threads
from ringlog.adoption.server.objects import OldColumn, OldTable
from ringlog.adoption.server.session import ABSENT, connected, message_of, number
from ringlog.adoption.server.texts import QuestionMarks, Unreadable, reading
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

_BATCH = 2000  # rows
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
    """Copies the tables into the schema. Raises pymssql.Error and psycopg.Error."""

    def work(waiting: Iterator[OldTable]) -> Iterator[SiteCopied]:
        with (
            connected(source.address, source.password, source.version) as old,
            session.connect(limited, autocommit=True) as new,
        ):
            new.execute("set session timezone to 'UTC'")
            # no trigger fires and no foreign key is checked row by row
            new.execute("set session_replication_role to replica")
            for table in waiting:
                yield _tried(old, new, table, database, source)

    largest_first = sorted(tables, key=lambda table: -table.bytes)
    with copier(conninfo, database) as limited:
        return in_threads(largest_first, connections, work, report)


def _tried(
    old: Any, new: psycopg.Connection[Any], table: OldTable, database: str, source: Source
) -> SiteCopied:
    """A table that cannot be copied does not prevent the copy of others."""
    try:
        return _copy(old, new, table, database, source)
    except psycopg.Error as error:
        if new.broken:
            raise
        return SiteCopied(table.name, 0, False, False, (), str(error).strip().replace("\n", "; "))
    except pymssql.Error as error:
        if number(error) not in ABSENT:
            raise
        return SiteCopied(table.name, 0, False, False, (), f"the old server reports: {message_of(error)}")


def _copy(
    old: Any, new: psycopg.Connection[Any], table: OldTable, database: str, source: Source
) -> SiteCopied:
    here = sql.Identifier(database, table.name.lower())
    there = _columns_here(new, database, table.name.lower())
    wanted = [column for column in table.columns if column.type not in ROW_VERSIONS]
    columns = [column for column in wanted if there.get(column.name.lower(), "") == ""]
    if lost := [column.name for column in wanted if column.name.lower() not in there]:
        what = f"has no column {lost[0]}" if there else "is not there: run 1_tables.sql"
        return SiteCopied(table.name, 0, False, False, (), f"{database}.{table.name} {what}")
    readings = [reading(column, source.charset, source.is_ase) for column in columns]
    query = f"select {', '.join(of.expression for of in readings)} from {table.place}"
    names = sql.SQL(", ").join(sql.Identifier(column.name.lower()) for column in columns)
    singles = [place for place, column in enumerate(columns) if column.type == "real"]
    kinds = [column.type for column in columns]
    back = sql.SQL("select {} from {}").format(
        sql.SQL(", ").join(compared(column.type, sql.Identifier(column.name.lower())) for column in columns),
        here,
    )
    came, was, stored = Digest(singles), Digest(singles), Digest(singles)
    unread: list[str] = []
    marks = QuestionMarks(columns, readings)
    with new.transaction():
        new.execute(
            sql.SQL("create temporary table arrived on commit drop as select {} from {} limit 0").format(
                names, here
            )
        )
        statement = sql.SQL("copy arrived ({}) from stdin").format(names)
        with new.cursor() as cursor, cursor.copy(statement) as into, old.cursor() as from_old:
            from_old.execute(query)
            while batch := from_old.fetchmany(_BATCH):
                for row in batch:
                    try:
                        values = [of.value(each) for of, each in zip(readings, row, strict=True)]
                    except Unreadable as error:
                        unread.append(f"{table.name}, {_key(table, columns, row)}: {error}")
                        continue
                    into.write_row([stored_as(kind, each) for kind, each in zip(kinds, values, strict=True)])
                    came.add(values)
                    marks.add(values)
            lost_characters = [f"{table.name}: {line}" for line in marks.lost(from_old, table.place)]
        _read(new, back, was)
        if was.text() != came.text():
            new.execute(sql.SQL("delete from {}").format(here))
            new.execute(
                sql.SQL(
                    "insert into {} ({names}) overriding system value select {names} from arrived"
                ).format(here, names=names)
            )
            _read(new, back, stored)
        else:
            stored = was
        for column in columns:
            if column.identity is not None:
                _continue_identity(new, here, column)
    more = [f"{table.name}: {len(unread)} rows in all"] if len(unread) > _MOST_UNREAD else []
    left_out = (*lost_characters, *unread[:_MOST_UNREAD], *more)
    same = stored.text() == came.text()
    return SiteCopied(table.name, came.rows, was.text() != came.text(), same, left_out)


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


def _read(new: psycopg.Connection[Any], question: sql.Composed, into: Digest) -> None:
    with new.cursor(name="stored") as cursor:
        for row in cursor.execute(question):
            into.add(row)


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
        found = new.execute(
            sql_file(__file__, "site_rows_unreferenced"),
            [database],
        ).fetchall()
        broken = []
        for name, table, other, given, same in found:
            lacking = f"not exists (select from {other} b where {same})"
            row = new.execute(
                f"select count(*) from {table} a where {given} and {lacking}".encode()
            ).fetchone()
            if row and row[0]:
                broken.append(f"{row[0]} rows of {table} refer to no row of {other} ({name}): copy once more")
    return broken
