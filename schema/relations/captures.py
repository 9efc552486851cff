"""Captures: the rows that are kept around an event, in `capture.<table>` with the event's number.

The procedures in procedures/captures make these tables and fill them. They depend on no other table, so
captures stay when a table is changed, renamed or dropped.
"""

import re
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.facility import CaptureRule
from ringlog.schema.layout import RECORDER
from ringlog.schema.own_tables import (
    bigint,
    boolean,
    double,
    grant_select,
    integer,
    own_column,
    own_table,
    text,
    timestamp,
)

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

capture_rule = own_table(
    "capture_rule",
    text("name", key=True),
    own_column(
        postgresql.ARRAY(sa.TEXT), "signals", "patterns of LIKE: an event when one leaves its alarm limits"
    ),
    text("tables", "to be kept, separated by commas"),
    double("before", "seconds before the event"),
    double("after", "seconds after it"),
    double("keep_days", "null: for ever", null=True),
    double("pause", "least seconds from one event of the rule to the next"),
    text("note", "before the reading in the note of an event"),
    timestamp("latest", "event, or when it was refused", null=True),
    text("trouble", "why the latest event was refused", null=True),
    comment="rules of the facility file by which events are registered",
)

TABLES = (capture, captured_table, capture_refused)


def prepare(connection: sa.Connection) -> None:
    """Lets recorders read what they have registered, but no rows."""
    grant_select(connection, (capture, captured_table), RECORDER)


def record_rules(connection: sa.Connection, rules: Sequence[CaptureRule]) -> list[str]:
    """Takes the rules over from the facility file. Returns the changes."""
    wanted = {
        rule.name: {
            "name": rule.name,
            "signals": [_like(each) for each in rule.signals],
            "tables": ",".join(rule.tables),
            **{name: getattr(rule, name) for name in ("before", "after", "keep_days", "pause", "note")},
        }
        for rule in rules
    }
    query = sa.select(*(each for each in capture_rule.c if each.name not in ("latest", "trouble")))
    there = {row["name"]: dict(row) for row in connection.execute(query).mappings()}
    changed = [name for name in sorted({*there, *wanted}) if there.get(name) != wanted.get(name)]
    if changed:
        connection.execute(capture_rule.delete().where(capture_rule.c.name.in_(changed)))
        new = [wanted[name] for name in changed if name in wanted]
        if new:
            connection.execute(capture_rule.insert(), new)
    return [
        f"capture {name}: " + ("removed" if name not in wanted else "changed" if name in there else "added")
        for name in changed
    ]


def _like(pattern: str) -> str:
    """The pattern of LIKE for one in which * stands for any characters."""
    return re.sub(r"([\\%_])", r"\\\1", pattern).replace("*", "%")
