"""Makes summaries again from the rows, after changes that housekeeping does not notice."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg
from psycopg import sql

from ringlog.history.summaries.summarising import connected, summarise
from ringlog.schema import locks
from ringlog.schema.layout import EARLIEST, LOG_TABLES, OWNER
from ringlog.schema.moments import EPOCH
from ringlog.schema.relations import closed
from ringlog.schema.relations.partitions import Week
from ringlog.schema.sql_files import sql_file


def summarise_again(
    conninfo: str, table: str, start: datetime, end: datetime, now: datetime | None = None
) -> Iterator[tuple[datetime, int]]:
    """Makes the summaries of a table from `start` on and before `end` again, from rows in the log and in the
    archive, week by week. Yields the first moment of each week and the number of rows read.

    All spans of a week are marked, as by late rows. The summaries can be read meanwhile, and after a kill the
    next round of housekeeping makes the marked ones. Spans without rows are kept, since those of rows past
    retention cannot be made again. Raises ValueError for a table without summaries.
    """
    with connected(conninfo) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
        levels, until = connection.execute(
            "select levels, until from ringlog.summarised where table_name = %s", [table]
        ).fetchone() or ([], None)
        if not levels:
            raise ValueError(f"table {table} has no summaries")
        if until is None:
            return  # no summaries yet: housekeeping will make all of them
        level = timedelta(seconds=levels[0])
        reached = max(EARLIEST, start - (start - EPOCH) % level)
        end = min(end, until)
        with connection.transaction():
            # the blocks of closed rows that exist already are not made again
            connection.execute(locks.statement(locks.SUMMARIES))
            closed.reopen(connection, table, [(reached, end)])
        while (first := _first(connection, table, reached, end)) is not None:
            week = Week.of(first)
            begin = max(reached, week.start)
            connection.execute(
                "insert into ringlog.summary_mark select %s, moment"
                " from generate_series(%s::timestamptz, %s::timestamptz - interval '1 us', %s) as moment",
                [table, begin, min(end, week.end), level],
            )
            yield begin, summarise(conninfo, now).get(table, 0)
            reached = week.end


def _first(connection: psycopg.Connection, table: str, start: datetime, end: datetime) -> datetime | None:
    """The first moment from `start` on and before `end` with rows in the log, or in a week of the archive."""
    query = sql.SQL(sql_file(__file__, "resummarising_first")).format(log=sql.Identifier(LOG_TABLES, table))
    found = connection.execute(query, {"table": table, "start": start, "end": end}).fetchone()
    return found[0] if found else None
