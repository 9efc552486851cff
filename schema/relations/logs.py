"""Schema `log`: the logs as views.

A log's table is `weeks.<table>`, partitioned by week, with the partitions in schema log: procedures and
housekeeping use it. `log.<table>` is a view of it and, from the first one on, of the archived weeks
(`archive_tables.py`). Neither part has a condition, so that PostgreSQL plans both as one table:
it leaves out weeks of other times, also when a time is known only as the query begins, and merges sorted
parts.
"""

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.layout import LOG, LOG_TABLES, READER
from ringlog.schema.session import AnyConnection, driver
from ringlog.schema.sql_files import sql_file

_MANIFEST = "ringlog_manifest_changed"


def create_view(connection: sa.Connection, table: str) -> None:
    """Makes the view of a log without archived weeks, or gives it the columns that its table has now."""
    run(connection, view(table, catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))))


def view(table: str, columns: Iterable[str]) -> sql.Composable:
    """The statement for that; `columns` are those of the log's table."""
    return sql.SQL("create or replace view {} as select {} from {}").format(
        sql.Identifier(LOG, table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.Identifier(LOG_TABLES, table),
    )


def view_archive(connection: AnyConnection, table: str, archived: str | None = None) -> None:
    """Adds archived weeks to the view of a log: those of this table of schema ARCHIVE_FILES."""
    call = sql.SQL("select ringlog.view_archive({}, {})")
    run(connection, call.format(sql.Literal(table), sql.Literal(archived or table)))


def has_archive(connection: AnyConnection, table: str) -> bool:
    """Whether the view of a log has the archived weeks too."""
    query = f"select where {_HAS_ARCHIVE.format('%s').replace('%I', '%%I')}"
    return driver(connection).execute(query.encode(), [table]).rowcount > 0


_HAS_ARCHIVE = (
    "exists (select from pg_depend where classid = 'pg_rewrite'::regclass"
    " and refobjid = to_regclass(format('archive_files.%I', cast({} as text))))"
)


def create_missing(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """Makes the views that these logs lack, or that lack columns of their tables. Returns these logs. Views
    with archived weeks get columns by archive_tables.create_missing."""
    changed = []
    for table in connection.scalars(sa.text(_LACKING), {"names": [*tables]}).all():
        create_view(connection, table)
        # nobody reads a table that is still moving to this server
        if connection.scalar(_MAY_READ, {"reader": READER, "table": table}):
            grant = sql.SQL("grant select on {} to {}")
            run(connection, grant.format(sql.Identifier(LOG, table), sql.Identifier(READER)))
        changed.append(table)
    return changed


_MAY_READ = sa.text("select has_table_privilege(:reader, format('weeks.%I', cast(:table as text)), 'select')")

_LACKING = sql_file(__file__, "logs_lacking").format(has_archive=_HAS_ARCHIVE.format("weeks.relname"))


def watch_manifest(connection: sa.Connection) -> None:
    """Makes the triggers that apply changes of the manifest to the foreign tables."""
    there = sa.text("select count(*) from pg_trigger where tgname ^@ :name and not tgisinternal")
    if connection.scalar(there, {"name": _MANIFEST}) == 4:
        return
    for table, event, rows in (
        ("cold_week", "insert", "referencing new table as now"),
        ("cold_week", "update", "referencing old table as before new table as now"),
        ("cold_week", "delete", "referencing old table as before"),
        ("history", "insert", ""),
    ):
        run(
            connection,
            sql.SQL(
                "create or replace trigger {} after {} on {} {} for each statement"
                " execute function ringlog.manifest_changed()"
            ).format(
                sql.Identifier(f"{_MANIFEST}_{event}"),
                sql.SQL(event),
                sql.Identifier("ringlog", table),
                sql.SQL(rows),
            ),
        )
