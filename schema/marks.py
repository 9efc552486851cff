"""Marks: notes of people at times of the readings, with every version of each. Views: states of the page with
a name, an owner and a description."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.own_tables import boolean, integer, own_column, own_table, restrict_rows, text, timestamp
from ringlog.schema.sql_files import sql_file

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

saved_view = own_table(
    "saved_view",
    text("name", key=True),
    text("description"),
    text("state", "the part of the page's address behind #"),
    own_column(postgresql.ARRAY(sa.TEXT), "signals", "null: readers of any see it", null=True),
    text("owner", "the login that may change it"),
    text("program", "as the client reports it"),
    timestamp("made", "when this state was saved", default=sa.func.clock_timestamp()),
    comment="states of the page, by name",
)


def restrict(connection: sa.Connection) -> None:
    """Shows marks and views of signals only to readers of one of them, once the procedures are there."""
    for table in (mark, saved_view):
        restrict_rows(connection, table, sql_file(__file__, "of_readable_signals"))
