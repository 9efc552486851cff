"""The storage of closed rows: closed.<table> has the rows of a log again, thousands of them as one value for
each column.

A block has the rows of a log from `begins` on and before `ends`, by time and seq_no. The row for `time` is
the block itself; every other one has the values of a column, as ringlog.history.packing packs them. A block
is identified by more than names, so that no block of a former log or column is used: by the partition of its
rows (`part`), which must belong to the log, and by the column's name, number and type, which must be the
current ones. Times of late rows (ringlog.summary_mark) end a block at once; ringlog.history.closing makes
another.

The table of a log is made with its first block.
"""

from collections.abc import Sequence
from datetime import datetime

import psycopg
from psycopg import sql

from ringlog.schema import catalogue
from ringlog.schema.layout import CLOSED, LOG_TABLES, READER, TABLE_READER
from ringlog.schema.sql_files import sql_file

_CREATE = sql_file(__file__, "closed_create")


def storage(table: str) -> sql.Identifier:
    return sql.Identifier(CLOSED, table)


def is_there(connection: psycopg.Connection, table: str) -> bool:
    return catalogue.exists(connection, CLOSED, table)


def create_missing(connection: psycopg.Connection, table: str) -> None:
    """Makes the storage of a log's closed rows, as ringlog_owner."""
    if is_there(connection, table):
        return
    log = sql.Literal(sql.Identifier(LOG_TABLES, table).as_string())
    readers = sql.SQL(", ").join(map(sql.Identifier, (READER, TABLE_READER)))
    names = {"storage": storage(table), "log": log, "readers": readers}
    connection.execute(sql.SQL(_CREATE).format(**names))


def reopen(connection: psycopg.Connection, table: str, runs: Sequence[tuple[datetime, datetime]]) -> None:
    """Deletes the blocks that overlap one of these ranges of time."""
    if not runs or not is_there(connection, table):
        return
    connection.execute(
        sql.SQL(
            "delete from {storage} where begins = any(array("
            " select block.begins from unnest(%s::timestamptz[], %s::timestamptz[]) as run (start, stop)"
            " join {storage} as block on block.column_name = 'time'"
            " and block.begins < run.stop and block.ends > run.start))"
        ).format(storage=storage(table)),
        [[start for start, _ in runs], [stop for _, stop in runs]],
    )
