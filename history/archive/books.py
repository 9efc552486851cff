"""Enters rows that arrived late for archived weeks in the ledger."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema.sql_files import sql_file

SPOOL = "archive"


def enter(
    connection: sa.Connection,
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
        connection.execute(
            sa.text(sql_file(__file__, "books_enter")),
            {
                "table": table,
                "spool": SPOOL,
                "times": [*(time for time, _ in conflicts), *repeated],
                "refused": refused,
            },
        )
    for _, row in conflicts:
        connection.execute(
            sa.text(
                "insert into ringlog.event (spool, number, table_name, time, kind, rows, message)"
                " values (:spool, (select coalesce(max(number), 0) + 1 from ringlog.event"
                " where spool = :spool), :table, now(), 'refused', 1, :message)"
            ),
            {
                "spool": SPOOL,
                "table": table,
                "message": f"{file} has another row of this time and seq_no: {row}",
            },
        )


def enter_twice(connection: sa.Connection, table: str, file: str, query: sql.Composable) -> None:
    """Enters the rows of a query that are in a week already: time, text, whether the other row is equal."""
    options = {"no_parameters": True}
    twice = connection.exec_driver_sql(query.as_string(), execution_options=options).all()
    conflicts = [(time, row) for time, row, same in twice if not same]
    enter(connection, table, file, conflicts, [time for time, _, same in twice if same])
