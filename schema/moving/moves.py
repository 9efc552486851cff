"""The state of a table's move from one server to another, as recorded on the servers, and the closing of the
old copy.

The first server records the move, the old server of the table the rows that arrive meanwhile, the new one the
copied parts. An interrupted move can therefore be continued from any machine.
"""

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import OF_A_TABLE
from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.installing import made, renaming
from ringlog.schema.layout import (
    ARCHIVE,
    ARCHIVE_FILES,
    CLOSED,
    LOG,
    LOG_TABLES,
    READER,
    RECENT,
    SCHEMA_OF_LEVEL,
    SUMMARIES,
    WRITER,
)
from ringlog.schema.moving.elsewhere import moved_row
from ringlog.schema.relations.tiers import cold_week, leave_manifest

BEGUN = ""
"""a part without rows: parts that are not copied yet may not come from another source"""

_RECORDING = "ringlog_record_moved_row"
_REFUSING = "ringlog_refuse_moved"


def begin_recording(connection: sa.Connection, table: str, function: str) -> None:
    """From now on this function of ringlog's records the key of every row that enters the log."""
    log = sql.Identifier(LOG_TABLES, table)
    if not _has_trigger(connection, log, _RECORDING):
        run(
            connection,
            sql.SQL("create trigger {} after insert on {} for each row execute function {}({})").format(
                sql.Identifier(_RECORDING), log, sql.Identifier("ringlog", function), sql.Literal(table)
            ),
        )


def end_recording(connection: sa.Connection, table: str) -> None:
    log = sql.Identifier(LOG_TABLES, table)
    run(connection, sql.SQL("drop trigger if exists {} on {}").format(sql.Identifier(_RECORDING), log))
    connection.execute(moved_row.delete().where(moved_row.c.table_name == table))


def closing(table: str, ring: sql.Identifier) -> sql.Composed:
    """The statements that close the old copy: sessions that used it before are refused."""
    log = sql.Identifier(LOG_TABLES, table)
    statements = [
        sql.SQL(
            "create or replace trigger {} before insert or update or delete on {}"
            " for each statement execute function ringlog.refuse_moved({})"
        ).format(sql.Identifier(_REFUSING), relation, sql.Literal(table))
        for relation in (ring, log)
    ]
    statements.append(
        sql.SQL("revoke select on {}, {}, {} from {}, {}").format(
            sql.Identifier("online", table),
            sql.Identifier(LOG, table),
            log,
            sql.Identifier(READER),
            sql.Identifier(WRITER),
        )
    )
    return sql.SQL("; ").join(statements)


def closing_signals(table: str) -> sql.Composed:
    """The statement that refuses changes of the old copy's signals."""
    return sql.SQL(
        "create or replace trigger {} before insert or update on ringlog.sample_signal for each row"
        " when (new.table_name = {}) execute function ringlog.refuse_moved({})"
    ).format(sql.Identifier(_refusing_signals(table)), sql.Literal(table), sql.Literal(table))


def _refusing_signals(table: str) -> str:
    return f"moved_{table}"


def _has_trigger(connection: sa.Connection, relation: sql.Identifier, name: str) -> bool:
    query = sa.text(
        "select true from pg_trigger where tgrelid = cast(:relation as regclass) and tgname = :name"
    )
    return bool(connection.scalar(query, {"relation": relation.as_string(), "name": name}))


def drop_copy(connection: sa.Connection, table: str) -> None:
    """Drops all objects and entries of a table on a server."""
    names = [table, *renaming.former_names(connection).get(table, ())]
    procedures = [pattern.format(name) for name in names for pattern in OF_A_TABLE.values()]
    made.drop(connection, procedures)
    for former in names[1:]:
        for schema in ("online", LOG):
            run(connection, sql.SQL("drop view if exists {}").format(sql.Identifier(schema, former)))
    for schema in (RECENT, ARCHIVE, *SCHEMA_OF_LEVEL.values(), LOG):
        run(connection, sql.SQL("drop view if exists {}").format(sql.Identifier(schema, table)))
    for kind, end in (("foreign table", " files"), ("foreign table", " alone"), ("table", "")):
        relation = sql.Identifier(ARCHIVE_FILES, f"{table}{end}")
        run(connection, sql.SQL(f"drop {kind} if exists {{}}").format(relation))
    kinds = {"v": "view", "r": "table", "p": "table", "S": "sequence"}
    schemas = ("online", "ring", LOG_TABLES, CLOSED, SUMMARIES)
    # the view of a ring comes before the ring
    existing = catalogue.relations(connection, schemas, [table, f"{table}_until"])
    for (schema, name), kind in existing.items():
        if name == table or (schema, kind) == (SUMMARIES, "S"):
            run(connection, sql.SQL(f"drop {kinds[kind]} {{}}").format(sql.Identifier(schema, name)))
    _forget(connection, table)


def _forget(connection: sa.Connection, table: str) -> None:
    """Deletes a table from ringlog's own tables, except its server and rights, and its archived weeks from
    the manifest."""
    files = sa.select(cold_week.c.file).where(cold_week.c.table_name == table)
    leave_manifest(connection, connection.scalars(files).all())
    run(
        connection,
        sql.SQL(
            "drop trigger if exists {} on ringlog.sample_signal;"
            "delete from ringlog.signal_state as state using ringlog.sample_signal as known"
            " where known.number = state.number and known.table_name = {}"
        ).format(sql.Identifier(_refusing_signals(table)), sql.Literal(table)),
    )
    query = sa.text(
        "select relname from pg_attribute join pg_class on pg_class.oid = attrelid"
        " where relnamespace = 'ringlog'::regnamespace and relkind = 'r' and not attisdropped"
        " and attname = 'table_name'"
        " and relname not in ('move', 'stand_in', 'set_aside', 'table_right', 'table_group')"
    )
    for name in connection.scalars(query).all():
        run(
            connection,
            sql.SQL("delete from {} where table_name = {}").format(
                sql.Identifier("ringlog", name), sql.Literal(table)
            ),
        )
