"""Captures: the rows that are kept around an event, in `capture.<table>` with the event's number.

The procedures in procedures/captures make these tables and fill them. They depend on no other table, so
captures stay when a table is changed, renamed or dropped.
"""

import sqlalchemy as sa

from ringlog.schema.layout import RECORDER
from ringlog.schema.own_tables import bigint, boolean, grant_select, integer, own_table, text, timestamp

capture = own_table(
    "capture",
    integer("number", None, sa.Identity(always=True), key=True),
    text("name"),
    timestamp("time", "of the event"),
    timestamp("begins", "rows from this time on are kept"),
    timestamp("ends", "and before this"),
    timestamp("late_until", "rows that arrive later are not added"),
    timestamp("expires", "the capture is deleted then; null: never", null=True),
    text("note", "what the caller says about the event"),
    text("login"),
    text("program", "as the client reports it"),
    timestamp("made", "when it was registered", default=sa.func.clock_timestamp()),
    comment="events whose rows are kept",
)

captured_table = own_table(
    "captured_table",
    integer("capture", "number of the event", key=True),
    text("table_name", "when the event was registered", key=True),
    boolean("is_of_samples", "samples of signals, not rows of all columns"),
    bigint("rows", "number of rows or samples", default="0"),
    timestamp("copied", "the newest row when the ring was last read; null: none", null=True),
    timestamp("due", "next look for rows; null: the capture has ended", null=True),
    text("filtered", "samples: the signals of each policy at the source, as a JSON object", null=True),
    text("lost", "rows that the ring may have lost before they were copied", null=True),
    text("trouble", "the error of the latest copy", null=True),
    sa.Index("captured_table_due", "due"),
    comment="tables of captures; capture.<table> has the rows",
)

capture_refused = own_table(
    "capture_refused",
    boolean("one", None, sa.CheckConstraint("one"), key=True, default=sa.true()),
    text("reason", "the disk, and the bytes that are free"),
    comment="one row while the disk is nearly full: no capture is registered",
)


TABLES = (capture, captured_table, capture_refused)


def prepare(connection: sa.Connection) -> None:
    """Lets recorders read what they have registered, but no rows."""
    grant_select(connection, (capture, captured_table), RECORDER)
