"""Weeks past retention: set aside in a schema of their own, and dropped for good when the
facility's keep_dropped is over. Until then ringlog.history.archive.restoring brings them back."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import WEEKS
from ringlog.schema.change import run
from ringlog.schema.facility import Facility, SampleTable
from ringlog.schema.installing.obstacles import Obstacle, as_owner
from ringlog.schema.layout import LOG_TABLES, SET_ASIDE
from ringlog.schema.moments import in_utc
from ringlog.schema.relations.tiers import housekeeping, note_dropped, set_aside
from ringlog.schema.session import AnyConnection, driver
from ringlog.schema.sql_files import sql_file
from ringlog.schema.trusted_clock import Clock


@dataclass(frozen=True)
class Aside:
    """A week that is set aside: the relation in schema set_aside with its rows; times are in UTC."""

    relation: str
    table: str
    begins: datetime
    ends: datetime
    since: datetime
    until: datetime

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(SET_ASIDE, self.relation)


def weeks_aside(connection: AnyConnection, table: str | None = None) -> list[Aside]:
    """The weeks that are set aside, of all tables or one, the oldest first."""
    query = (
        "select relation, table_name, begins, ends, since, since + keep_dropped::interval"
        " from ringlog.set_aside, ringlog.housekeeping where table_name = coalesce(%s, table_name)"
        " order by table_name, begins"
    )
    return [Aside(*map(in_utc, row)) for row in driver(connection).execute(query, [table])]


def set_week_aside(
    connection: sa.Connection, table: str, partition: str, begins: datetime, ends: datetime, clock: Clock
) -> bool:
    """Takes a partition out of its log. True when it is set aside, false when it is dropped at once."""
    become_owner(connection)
    keeps = connection.scalar(
        sa.select(sa.cast(housekeeping.c.keep_dropped, sa.Interval) > sa.literal_column("interval '0'"))
    )
    identifier = sql.Identifier("log", partition)
    if not keeps:
        drop_rows(connection, "log", partition)
        note_dropped(connection, table, ends)
        return False
    taken = {*connection.scalars(sa.select(set_aside.c.relation))}
    relation = next(
        name for number in range(1, len(taken) + 2) if (name := _numbered(partition, number)) not in taken
    )
    run(
        connection,
        sql.SQL("alter table {} detach partition {}").format(sql.Identifier(LOG_TABLES, table), identifier),
    )
    if relation != partition:
        run(connection, sql.SQL("alter table {} rename to {}").format(identifier, sql.Identifier(relation)))
        identifier = sql.Identifier("log", relation)
    run(connection, sql.SQL("alter table {} set schema {}").format(identifier, sql.Identifier(SET_ASIDE)))
    # a slow clock must not shorten the time
    since = max(clock.now, clock.round)
    connection.execute(
        set_aside.insert().values(relation=relation, table_name=table, begins=begins, ends=ends, since=since)
    )
    note_dropped(connection, table, ends)
    return True


def _numbered(partition: str, number: int) -> str:
    return partition if number == 1 else f"{partition}_{number}"


def drop_for_good(connection: sa.Connection, week: Aside) -> bool:
    become_owner(connection)
    drop_rows(connection, SET_ASIDE, week.relation)
    connection.execute(set_aside.delete().where(set_aside.c.relation == week.relation))
    return True


def drop_rows(connection: AnyConnection, schema: str, name: str) -> None:
    """Drops a table of stored rows, as ringlog_owner.

    A view, a function or a default of any login may depend on it, also without a right on the table. Such an
    object keeps an empty table in schema set_aside, which nobody may read, and no rows.
    """
    table = sql.Identifier(schema, name)
    query = "select oid from pg_class where oid = to_regclass(%s)"
    found = driver(connection).execute(query, [table.as_string()]).fetchone()
    if found is not None and _drop(connection, table) is not None:
        _empty(driver(connection), found[0], schema, name)


def _drop(connection: AnyConnection, table: sql.Identifier) -> str | None:
    """Drops a table, or returns what depends on it, in PostgreSQL's words."""
    try:
        with driver(connection).transaction():
            run(connection, sql.SQL("drop table {}").format(table))
    except psycopg.errors.DependentObjectsStillExist as error:
        return " ".join((error.diag.message_detail or "").split())
    return None


def _empty(connection: psycopg.Connection, oid: int, schema: str, name: str) -> None:
    table = sql.Identifier(schema, name)
    query = "select inhparent::regclass::text from pg_inherits where inhrelid = %s"
    for (log,) in connection.execute(query, [oid]).fetchall():
        run(connection, sql.SQL("alter table {} detach partition {}").format(sql.SQL(log), table))
    run(connection, sql.SQL("truncate {}").format(table))
    emptied = f"emptied_{oid}"
    run(connection, sql.SQL("alter table {} rename to {}").format(table, sql.Identifier(emptied)))
    if schema != SET_ASIDE:
        identifier = sql.Identifier(schema, emptied)
        run(connection, sql.SQL("alter table {} set schema {}").format(identifier, sql.Identifier(SET_ASIDE)))


def drop_emptied(connection: sa.Connection) -> list[str]:
    """Drops the tables that drop_rows has only emptied. Returns a line for each that objects still depend
    on."""
    become_owner(connection)
    kept = []
    for name in connection.scalars(sa.text(_EMPTIED)).all():
        dependents = _drop(connection, sql.Identifier(SET_ASIDE, name))
        if dependents is not None:
            kept.append(f"kept the empty table {SET_ASIDE}.{name}: {dependents}")
    return kept


_EMPTIED = (
    f"select relname from pg_class where relnamespace = '{SET_ASIDE}'::regnamespace and relkind = 'r'"
    r" and relname ~ '^emptied_\d+$' order by relname"
)


def obstacles(connection: sa.Connection, facility: Facility) -> Iterator[Obstacle]:
    """A shorter retention takes weeks from the log: it is a decision of the operator."""
    query = sa.text("select table_name, retention from ringlog.every_table")
    recorded = {row.table_name: row.retention for row in connection.execute(query)}
    for table in facility.every_table:
        if table.retention is None or recorded.get(table.name, "") in ("", str(table.retention)):
            continue
        found = connection.execute(sa.text(_WEEKS_LOST), {"table": table.name, "to": str(table.retention)})
        counted = [(row.begins.astimezone(UTC), _rows(connection, row)) for row in found.all()]
        weeks = [(begins, rows) for begins, rows in counted if rows]
        if not weeks:
            continue
        before = recorded[table.name]
        first, last = (f"{begins:%Gw%V}" for begins in (weeks[0][0], weeks[-1][0]))
        which = f"the week {first}" if len(weeks) == 1 else f"{len(weeks)} weeks, {first} to {last},"
        yield Obstacle(
            f"table {table.name}: its log is kept for {before or 'ever'} and the facility file has"
            f" {table.retention}; this drops {which} with about {sum(rows for _, rows in weeks)} rows",
            as_owner(
                sql.SQL("update {} set retention = {} where table_name = {}").format(
                    sql.Identifier(
                        "ringlog", "sample_table" if isinstance(table, SampleTable) else "logged_table"
                    ),
                    sql.Literal(str(table.retention)),
                    sql.Literal(table.name),
                )
            ),
        )


_WEEKS_LOST = sql_file(__file__, "dropping_lost").format(weeks=WEEKS)
"""The weeks of a table, in the log and in the archive, that another retention drops. PostgreSQL's estimate of
the rows is -1 before its first ANALYZE."""


def _rows(connection: sa.Connection, week: sa.Row[tuple[datetime, str | None, int]]) -> int:
    if week.estimate >= 0:
        return int(week.estimate)
    return int(connection.exec_driver_sql(f"select count(*) from {week.relation}").scalar() or 0)
