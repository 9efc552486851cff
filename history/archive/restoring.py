"""Brings weeks past retention, which were set aside, back into the log: see schema.relations.dropping."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.history.archive.manifest import default_partition
from ringlog.history.archive.stored import stored
from ringlog.schema import clock
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import change, run
from ringlog.schema.layout import LOG_TABLES, SET_ASIDE
from ringlog.schema.relations.dropping import Aside, drop_rows, weeks_aside
from ringlog.schema.relations.partitions import Week, alone, partitions_of_logs
from ringlog.schema.relations.statistics import turn_off as turn_off_statistics
from ringlog.schema.relations.tables import stored_columns
from ringlog.schema.relations.tiers import dropped, set_aside


class PastRetention(Exception):
    """The next round would set the week aside again."""


class Overlapping(Exception):
    """The log has a longer partition with a part of the week."""


def restore(engine: sa.Engine, table: str, start: datetime, end: datetime) -> Iterator[str]:
    """Brings back the weeks of a table with times from `start` on and before `end`. Yields a line for each.
    Raises PastRetention."""
    with alone(engine):
        with engine.begin() as connection:
            weeks = [
                week for week in weeks_aside(connection, table) if week.begins < end and week.ends > start
            ]
            for week in weeks:
                _demand_retention(connection, week)
        for week in weeks:
            change(engine, partial(_prepare, week=week))
            came = change(engine, partial(_bring_back, week=week))
            line = f"restored log.{Week(week.begins).partition(table)}"
            yield line + (f", {came} rows had arrived for it" if came else "")


def _demand_retention(connection: sa.Connection, week: Aside) -> None:
    moment = clock.read(connection).trusted
    query = sa.text(
        "select retention, cast(:now as timestamptz) - retention::interval >= :ends as past"
        " from ringlog.every_table where table_name = :table"
    )
    found = connection.execute(query, {"now": moment, "ends": week.ends, "table": week.table}).one()
    if found.past:
        raise PastRetention(
            f"the week of {week.begins:%Y-%m-%d} is past the retention of {week.table} ({found.retention}):"
            " set a longer one in the facility file and install it first"
        )


def _prepare(connection: sa.Connection, week: Aside) -> None:
    """Gives a week the present columns of its log, and a check constraint, with which it is attached without
    a scan of its rows."""
    become_owner(connection)
    there = stored_columns(connection, SET_ASIDE, [week.relation])[week.relation]
    wanted = stored_columns(connection, LOG_TABLES, [week.table])[week.table]
    actions = [
        sql.SQL("drop constraint if exists week"),
        sql.SQL('add constraint week check ("time" >= {} and "time" < {})').format(
            sql.Literal(week.begins), sql.Literal(week.ends)
        ),
        *(sql.SQL("drop column {}").format(sql.Identifier(name)) for name in there if name not in wanted),
    ]
    for name, kind in wanted.items():
        column = sql.Identifier(name)
        if name not in there:
            actions.append(sql.SQL("add column {} {}").format(column, sql.SQL(kind)))
        elif there[name] != kind:
            actions.append(sql.SQL("alter column {0} type {1} using {0}::{1}").format(column, sql.SQL(kind)))
    run(connection, sql.SQL("alter table {} {}").format(week.identifier, sql.SQL(", ").join(actions)))


def _bring_back(connection: sa.Connection, week: Aside) -> int:
    """Attaches a week to its log. Returns the number of rows that had arrived for its time meanwhile."""
    become_owner(connection)
    # the lock excludes readers too: see make_week
    run(
        connection,
        sql.SQL("lock table only {} in access exclusive mode").format(sql.Identifier(LOG_TABLES, week.table)),
    )
    names = {
        "log": sql.Identifier(LOG_TABLES, week.table),
        "aside": week.identifier,
        "start": sql.Literal(week.begins),
        "end": sql.Literal(week.ends),
    }
    overlapping = [
        partition
        for partition in partitions_of_logs(connection, [week.table])[week.table]
        if partition.start < week.ends and week.begins < partition.end
    ]
    for partition in overlapping:
        if partition.start < week.begins or week.ends < partition.end:
            raise Overlapping(f"log.{partition.name} has a part of the time of {week.relation}")
    sources = [default_partition(week.table), *(sql.Identifier("log", each.name) for each in overlapping)]
    came = sum(_take(connection, week, source, names) for source in sources)
    # rows that arrived while the week was set aside are missing in its summaries
    if came:
        connection.execute(
            sa.select(
                sa.func.ringlog.mark_summaries(
                    week.table,
                    sa.cast(week.identifier.as_string(), postgresql.REGCLASS),
                    week.begins,
                    week.ends,
                )
            )
        )
    for partition in overlapping:
        drop_rows(connection, "log", partition.name)
    name = Week(week.begins).partition(week.table) if week.ends == Week(week.begins).end else week.relation
    run(connection, sql.SQL("alter table {} set schema log").format(week.identifier))
    if name != week.relation:
        old = sql.Identifier("log", week.relation)
        run(connection, sql.SQL("alter table {} rename to {}").format(old, sql.Identifier(name)))
    names["partition"] = sql.Identifier("log", name)
    for statement in (
        "alter table {log} attach partition {partition} for values from ({start}) to ({end})",
        "alter table {partition} drop constraint week",
    ):
        run(connection, sql.SQL(statement).format(**names))
    turn_off_statistics(connection, week.table, name)
    connection.execute(set_aside.delete().where(set_aside.c.relation == week.relation))
    others = [other.ends for other in weeks_aside(connection, week.table)]
    away = max([week.begins, *others])
    connection.execute(
        dropped.update()
        .where(dropped.c.table_name == week.table)
        .values(until=sa.func.least(dropped.c.until, away))
    )
    return came


def _take(
    connection: sa.Connection, week: Aside, late: sql.Identifier, names: dict[str, sql.Composable]
) -> int:
    """Moves the rows of the week's time from a partition into it, and enters repeated ones in the ledger."""
    of_week = names | {"late": late, "partition": week.identifier}
    moved = stored(connection, week.table).take_late(connection, week.table, week.relation, of_week)
    gone = sql.SQL('delete from {late} where "time" >= {start} and "time" < {end}')
    run(connection, gone.format(late=late, **names))
    return moved
