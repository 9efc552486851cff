"""Statistics of the logs: PostgreSQL's planner needs those of time and seq_no only.

A growing log is analyzed repeatedly; 200 columns take 0.3 s of CPU each time. PostgreSQL has no setting for
all columns of a table, and a partition does not take over those of its log. To turn a column's off takes
34 µs, which for the weeks of a new log would be a quarter of the first start: housekeeping does it after the
start, and for each week when it is near.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.access.roles import become_owner
from ringlog.schema.catalogue import WEEKS, columns
from ringlog.schema.change import run, run_all, tried
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import LOG_TABLES
from ringlog.schema.many import by_connection
from ringlog.schema.relations.partitions import clock, tables_of_logs
from ringlog.schema.session import AnyConnection
from ringlog.schema.sql_files import sql_file

_NEAR = timedelta(days=1)


def turn_off(connection: AnyConnection, table: str, partition: str | None = None) -> None:
    """Turns off statistics of the data columns of a log, or of a new partition that has many rows."""
    log = sql.Identifier(LOG_TABLES, table)
    relation = sql.Identifier("log", partition) if partition else log
    run_all(connection, turning_off(relation, columns(connection, log)))


def turning_off(relation: sql.Identifier, stored: Collection[str]) -> Iterator[sql.Composable]:
    """The statement for these columns of a relation and its partitions, if any has data."""
    actions = [
        sql.SQL("alter column {} set statistics 0").format(sql.Identifier(column))
        for column in stored
        if column not in KEY_COLUMNS
    ]
    if actions:
        yield sql.SQL("alter table {} {}").format(relation, sql.SQL(", ").join(actions))


def turn_off_near(engine: sa.Engine, now: datetime | None = None) -> Iterator[str]:
    """Turns off statistics of the data columns of new logs' default partitions and of their weeks that begin
    within a day. `now`: PostgreSQL's time without it. Yields a line for each
    log that others are using: its turn is in the next round."""
    with engine.begin() as connection:
        tables = tables_of_logs(connection)
    for some in by_connection(tables):
        with engine.begin() as connection:
            wanted = _wanted(connection, some, (now or clock(connection)) + _NEAR)
        for table, statement in wanted:
            if tried(engine, partial(_turned_off, statement=statement)) is None:
                yield f"statistics of log.{table}: the table is in use, they are turned off later"
        engine.dispose()


def _wanted(connection: sa.Connection, tables: Sequence[str], horizon: datetime) -> list[tuple[str, str]]:
    parameters = {
        "tables": [*tables],
        "logs": [sql.Identifier(LOG_TABLES, table).as_string() for table in tables],
        "keys": [*KEY_COLUMNS],
        "horizon": horizon,
    }
    query = sa.text(sql_file(__file__, "statistics_wanted").replace("{weeks}", WEEKS))
    return [(table, statement) for table, statement in connection.execute(query, parameters)]


def _turned_off(connection: sa.Connection, statement: str) -> bool:
    become_owner(connection)
    run(connection, statement)
    return True
