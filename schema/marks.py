"""Marks: notes of people at times of the readings, with every version of each."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.own_tables import boolean, integer, own_column, own_table, restrict_rows, text, timestamp
from ringlog.schema.sql_files import sql_file
from ringlog.schema.views import saved_view

mark = own_table(
    "mark",
    integer("number", None, sa.Identity(), key=True),
    integer("version", "counts the corrections; the greatest is shown", key=True, autoincrement=False),
    timestamp("time", "of what the note is about"),
    timestamp("until", "its end; null: a moment", null=True),
    text("text", "of the note; of a withdrawn one the reason"),
    own_column(postgresql.ARRAY(sa.TEXT), "signals", "null: all", null=True),
    boolean("withdrawn", "no longer shown"),
    text("login", "who wrote this version"),
    text("program", "as the client reports it"),
    timestamp("made", "when this version was written", default=sa.func.clock_timestamp()),
    sa.Index("mark_time", "time"),
    comment="notes of people, in all versions; nobody deletes them",
)


def restrict(connection: sa.Connection) -> None:
    """Shows marks and views of signals only to readers of one of them, once the procedures are there."""
    for table in (mark, saved_view):
        restrict_rows(connection, table, sql_file(__file__, "of_readable_signals"))
