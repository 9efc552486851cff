"""Brings weeks past retention, which were set aside, back into the log: see schema.relations.dropping."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import psycopg
from psycopg import sql

from ringlog.history.archive.manifest import default_partition
from ringlog.history.archive.round import keep_readers_out
from ringlog.history.archive.stored import stored
from ringlog.schema import clock
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import change
from ringlog.schema.layout import LOG_TABLES, SET_ASIDE
from ringlog.schema.relations.dropping import Aside, drop_rows, weeks_aside
from ringlog.schema.relations.partitions import Week, alone, partitions_of_logs
from ringlog.schema.relations.statistics import turn_off as turn_off_statistics
from ringlog.schema.relations.tables import stored_columns
from ringlog.schema.session import connect


class PastRetention(Exception):
    """The next round would set the week aside again."""


class Overlapping(Exception):
    """The log has a longer partition with a part of the week."""


def restore(conninfo: str, table: str, start: datetime, end: datetime) -> Iterator[str]:
    """Brings back the weeks of a table with times from `start` on and before `end`. Yields a line for each.
    Raises PastRetention."""
    with alone(conninfo):
        with connect(conninfo) as connection:
            weeks = [
                week for week in weeks_aside(connection, table) if week.begins < end and week.ends > start
            ]
            for week in weeks:
                _demand_retention(connection, week)
        for week in weeks:
            change(conninfo, partial(_prepare, week=week))
            came = change(conninfo, partial(_bring_back, week=week))
            line = f"restored log.{Week(week.begins).partition(table)}"
            yield line + (f", {came} rows had arrived for it" if came else "")


def _demand_retention(connection: psycopg.Connection, week: Aside) -> None:
    moment = clock.read(connection).trusted
    query = "select retention, %s - retention::interval >= %s from ringlog.every_table where table_name = %s"
    ((retention, past),) = connection.execute(query, [moment, week.ends, week.table]).fetchall()
    if past:
        raise PastRetention(
            f"the week of {week.begins:%Y-%m-%d} is past the retention of {week.table} ({retention}):"
            " set a longer one in the facility file and install it first"
        )


def _prepare(connection: psycopg.Connection, week: Aside) -> None:
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
    connection.execute(sql.SQL("alter table {} {}").format(week.identifier, sql.SQL(", ").join(actions)))


def _bring_back(connection: psycopg.Connection, week: Aside) -> int:
    """Attaches a week to its log. Returns the number of rows that had arrived for its time meanwhile."""
    become_owner(connection)
    names = {
        "log": sql.Identifier(LOG_TABLES, week.table),
        "aside": week.identifier,
        "start": sql.Literal(week.begins),
        "end": sql.Literal(week.ends),
    }
    # the lock excludes readers too: see make_week
    keep_readers_out(connection, week.table)
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
            "select ringlog.mark_summaries(%s, %s::regclass, %s, %s)",
            [week.table, week.identifier.as_string(), week.begins, week.ends],
        )
    for partition in overlapping:
        drop_rows(connection, "log", partition.name)
    name = Week(week.begins).partition(week.table) if week.ends == Week(week.begins).end else week.relation
    connection.execute(sql.SQL("alter table {} set schema log").format(week.identifier))
    if name != week.relation:
        old = sql.Identifier("log", week.relation)
        connection.execute(sql.SQL("alter table {} rename to {}").format(old, sql.Identifier(name)))
    names["partition"] = sql.Identifier("log", name)
    for statement in (
        "alter table {log} attach partition {partition} for values from ({start}) to ({end})",
        "alter table {partition} drop constraint week",
    ):
        connection.execute(sql.SQL(statement).format(**names))
    turn_off_statistics(connection, week.table, name)
    connection.execute("delete from ringlog.set_aside where relation = %s", [week.relation])
    others = [other.ends for other in weeks_aside(connection, week.table)]
    away = max([week.begins, *others])
    update = "update ringlog.dropped set until = least(until, %s) where table_name = %s"
    connection.execute(update, [away, week.table])
    return came


def _take(
    connection: psycopg.Connection, week: Aside, late: sql.Identifier, names: dict[str, sql.Composable]
) -> int:
    """Moves the rows of the week's time from a partition into it, and enters repeated ones in the ledger."""
    of_week = names | {"late": late, "partition": week.identifier}
    moved = stored(connection, week.table).take_late(connection, week.table, week.relation, of_week)
    gone = sql.SQL('delete from {late} where "time" >= {start} and "time" < {end}')
    connection.execute(gone.format(late=late, **names))
    return moved
