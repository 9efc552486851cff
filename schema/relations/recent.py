"""Schema `recent`: a view of each log with this week, the four weeks before it and the future.

A query of the last hour by now() is planned over every partition of its log: PostgreSQL evaluates now() only
when the query runs, and excludes partitions then. Ten years are sixty of them. The bound of these views is a
constant, so partitions are excluded when the query is planned. Housekeeping moves it on, week by week.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.change import run
from ringlog.schema.layout import READER, RECENT
from ringlog.schema.relations.tables import stored_columns
from ringlog.schema.sql_files import sql_file

WEEKS = 4
"""before this one"""


def since(week: datetime) -> datetime:
    """From when on the views have rows, in the week that begins then."""
    return week - timedelta(weeks=WEEKS)


def behind(connection: sa.Connection, tables: Collection[str], start: datetime) -> list[str]:
    """The tables whose views begin at another time."""
    query = sa.text(
        "select relname, obj_description(oid, 'pg_class') from pg_class"
        " where relnamespace = to_regnamespace(:schema) and relkind = 'v' and relname = any(:names)"
    )
    comments = connection.execute(query, {"schema": RECENT, "names": [*tables]})
    return sorted(name for name, comment in comments if comment != _comment(start))


def create_missing(connection: sa.Connection, tables: Collection[str], start: datetime) -> list[str]:
    """Makes the views that these tables lack, or whose columns are not their logs'. Returns these tables."""
    lacking = [*connection.scalars(sa.text(_LACKING), {"schema": RECENT, "names": [*tables]})]
    there = stored_columns(connection, RECENT, lacking)
    logs = stored_columns(connection, "log", lacking)
    for table in lacking:
        view = sql.Identifier(RECENT, table)
        # columns at the end are added to the view: others may depend on it
        if table in there and [*logs[table].items()][: len(there[table])] != [*there[table].items()]:
            run(connection, sql.SQL("drop view {}").format(view))
        begin_at(connection, table, start)
        run(connection, sql.SQL("grant select on {} to {}").format(view, sql.Identifier(READER)))
    return lacking


_LACKING = sql_file(__file__, "recent_lacking")


def begin_at(connection: sa.Connection, table: str, start: datetime) -> None:
    """Makes the view of a table, or changes its begin."""
    view = sql.Identifier(RECENT, table)
    for statement in (
        "create or replace view {view} with (security_invoker = true) as"
        ' select * from {log} where "time" >= {start}::timestamptz',
        "comment on view {view} is {comment}",
    ):
        run(
            connection,
            sql.SQL(statement).format(
                view=view,
                log=sql.Identifier("log", table),
                start=sql.Literal(start.astimezone(UTC).isoformat()),
                comment=sql.Literal(_comment(start)),
            ),
        )


def _comment(start: datetime) -> str:
    return f"the log from {start.astimezone(UTC):%Y-%m-%d} on, UTC: ringlog moves it on"
