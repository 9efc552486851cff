"""Enters rows that arrived late for archived weeks in the ledger."""

from collections.abc import Sequence
from datetime import datetime

import psycopg
from psycopg import sql

from ringlog.schema.sql_files import sql_file

SPOOL = "archive"


def enter(
    connection: psycopg.Connection,
    table: str,
    file: str,
    conflicts: Sequence[tuple[datetime, str]],
    repeated: Sequence[datetime],
) -> None:
    """Enters rows by their times: refused ones, which differ from the file's row of the same key, and
    repeated ones, which the file already has.

    A refused row was acknowledged when its writer sent it, so it is subtracted from the acknowledged ones.
    The text of the event is the refused row.
    """
    refused = [True] * len(conflicts) + [False] * len(repeated)
    if refused:
        times = [*(time for time, _ in conflicts), *repeated]
        values = {"table": table, "spool": SPOOL, "times": times, "refused": refused}
        connection.execute(sql_file(__file__, "books_enter").encode(), values)
    for _, row in conflicts:
        connection.execute(
            "insert into ringlog.event (spool, number, table_name, time, kind, rows, message)"
            " select %s, coalesce(max(number), 0) + 1, %s, now(), 'refused', 1, %s"
            " from ringlog.event where spool = %s",
            [SPOOL, table, f"{file} has another row of this time and seq_no: {row}", SPOOL],
        )


def enter_twice(connection: psycopg.Connection, table: str, file: str, query: sql.SQL | sql.Composed) -> None:
    """Enters the rows of a query that are in a week already: time, text, whether the other row is equal."""
    twice = connection.execute(query).fetchall()
    conflicts = [(time, row) for time, row, same in twice if not same]
    enter(connection, table, file, conflicts, [time for time, _, same in twice if same])
