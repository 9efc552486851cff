"""Reports of writers: the writer of each table, counts of its rows by hour, and events."""

from datetime import datetime

import sqlalchemy as sa

from ringlog.schema.access.roles import become_owner
from ringlog.schema.own_tables import (
    bigint,
    boolean,
    double,
    integer,
    own_table,
    restrict_rows,
    text,
    timestamp,
)
from ringlog.schema.sql_files import sql_file

ledger = own_table(
    "ledger",
    text("table_name", key=True),
    timestamp("hour", "begin of the hour that the rows' times are in", key=True),
    text("spool", "of the writer that keeps these books", key=True),
    bigint("produced", "rows of the source"),
    bigint("acknowledged", "rows that the server accepted"),
    bigint("thinned", "rows dropped because the spool was full"),
    bigint("refused", "rows that the server refused for their content"),
    bigint("late", "rows that arrived after later ones"),
    bigint("repeated", "calls sent again because no answer arrived"),
    comment="counts of the rows of each table and hour; see also the function losses",
)

event = own_table(
    "event",
    text("spool", "of the writer that reported it", key=True),
    bigint("number", "counts the spool's events", key=True),
    text("table_name", key=True),
    timestamp("time", "when, or since when"),
    timestamp("until", "end, of events that last", null=True),
    text("kind", "gap, clock, thinned, refused, disconnected, …"),
    bigint("rows", "number of its rows", null=True),
    text("message"),
    sa.Index("event_time_idx", "table_name", "time"),
    comment="events of the readings of each table",
)

writer = own_table(
    "writer",
    text("table_name", key=True),
    bigint("epoch", "counts the claims; only the last one may write"),
    text("spool"),
    text("name", "machine and process"),
    timestamp("since"),
    timestamp("released", "when it gave the table up; null: it has not", null=True),
    timestamp("reported", "time of the last report, with the following figures", null=True),
    text("state", null=True),
    text("trouble", "the latest", null=True),
    timestamp("troubled", "time of the latest trouble", null=True),
    bigint("produced", "rows, since the process began", null=True),
    bigint("acknowledged", "rows, since the process began", null=True),
    bigint("waiting", "rows in the spool", null=True),
    timestamp("oldest", "time of the row that waits longest", null=True),
    bigint("late", null=True),
    bigint("refused", null=True),
    bigint("repeated", null=True),
    bigint("reconnected", null=True),
    double("latency", "of the last call, in seconds", null=True),
    comment="the writer of each table, and its state",
)

writer_run = own_table(
    "writer_run",
    text("table_name", key=True),
    timestamp("since", key=True),
    text("name", "machine and process"),
    timestamp("until", "when it gave the table up, or its last report"),
    boolean("released", "it gave the table up"),
    comment="former writers of each table, from the next writer's claim on",
)

dropped_sample = own_table(
    "dropped_sample",
    integer("number", "of the signal", key=True, autoincrement=False),
    text("table_name"),
    timestamp("hour", "of the server's clock, its begin", key=True),
    text("kind", "clock or paused", key=True),
    timestamp("since", "when the first of the hour arrived"),
    timestamp("until", "when the latest arrived"),
    bigint("rows", "number of samples"),
    comment="samples that put_<table>_batch has dropped, by signal and hour",
)

backup = own_table(
    "backup",
    text("folder", key=True),
    timestamp("made", "the end of the latest copy there"),
    comment="where ringlog backup has copied this database to",
)

arrival = own_table(
    "arrival",
    text("table_name", key=True),
    integer("seq_no", "the place that was taken last"),
    timestamp("time", "the newest of the ring then: another one came with its seq_no"),
    # it changes with each such row: room on the page for dead versions
    postgresql_with={"fillfactor": 10},
    comment="last places of rows without seq_no in the rings",
)

imported_file = own_table(
    "imported_file",
    text("table_name", key=True),
    text("file", "host:path", key=True),
    text("digest", "SHA-256 of its bytes"),
    integer("base", "place of the ring after which its rows continue"),
    bigint("rows", "number of its rows that were imported"),
    timestamp("began"),
    timestamp("ended", "when the last row was taken; null: it was not", null=True),
    comment="files of old rows (ringlog load --backfill), and their progress",
)

last_call = own_table(
    "last_call",
    text("procedure", key=True),
    text("host", "as the client reports it"),
    text("program", "as the client reports it"),
    text("login"),
    timestamp("called"),
    timestamp("failed", "time of the last failed call", null=True),
    integer("number", "of that error", null=True),
    text("error", null=True),
    comment="the last caller of each put over TDS",
)


# an event has a refused row whole: who may not read the table does not see it
_OF_READABLE_TABLES = sql_file(__file__, "ledger_of_readable_tables")


def restrict_events(connection: sa.Connection) -> None:
    """Shows events to readers of their tables only, if the database does not do so yet. As ringlog_owner."""
    restrict_rows(connection, event, _OF_READABLE_TABLES)


def forget_past_retention(connection: sa.Connection, now: datetime) -> None:
    """Deletes records for `why_missing` that are older than the weeks of their table: events, former writers,
    settings and dropped samples. `now` is a trusted time. The ledger stays: it accounts for all rows."""
    become_owner(connection)
    connection.execute(sa.text(sql_file(__file__, "ledger_past_retention")), {"now": now})
