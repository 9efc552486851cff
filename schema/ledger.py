"""Reports of writers: the writer of each table, counts of its rows by hour, and events."""

from typing import Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.schema.change import run
from ringlog.schema.layout import READER
from ringlog.schema.sql_files import sql_file

metadata = sa.MetaData(schema="ringlog")


def _time(name: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, postgresql.TIMESTAMP(timezone=True), **options)


def _count(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BIGINT, nullable=False, comment=comment)


ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("table_name", sa.TEXT, nullable=False),
    _time("hour", nullable=False, comment="begin of the hour that the rows' times are in"),
    sa.Column("spool", sa.TEXT, nullable=False, comment="of the writer that keeps these books"),
    _count("produced", "rows of the source"),
    _count("acknowledged", "rows that the server accepted"),
    _count("thinned", "rows dropped because the spool was full"),
    _count("refused", "rows that the server refused for their content"),
    _count("late", "rows that arrived after later ones"),
    _count("repeated", "calls sent again because no answer arrived"),
    sa.PrimaryKeyConstraint("table_name", "hour", "spool", name="ledger_pkey"),
    comment="counts of the rows of each table and hour; see also the function losses",
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("spool", sa.TEXT, nullable=False, comment="of the writer that reported it"),
    sa.Column("number", sa.BIGINT, nullable=False, comment="counts the spool's events"),
    sa.Column("table_name", sa.TEXT, nullable=False),
    _time("time", nullable=False, comment="when, or since when"),
    _time("until", comment="end, of events that last"),
    sa.Column("kind", sa.TEXT, nullable=False, comment="gap, clock, thinned, refused, disconnected, …"),
    sa.Column("rows", sa.BIGINT, comment="number of its rows"),
    sa.Column("message", sa.TEXT, nullable=False),
    sa.PrimaryKeyConstraint("spool", "number", "table_name", name="event_pkey"),
    sa.Index("event_time_idx", "table_name", "time"),
    comment="events of the readings of each table",
)

writer = sa.Table(
    "writer",
    metadata,
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("epoch", sa.BIGINT, nullable=False, comment="counts the claims; only the last one may write"),
    sa.Column("spool", sa.TEXT, nullable=False),
    sa.Column("name", sa.TEXT, nullable=False, comment="machine and process"),
    _time("since", nullable=False),
    _time("released", comment="when it gave the table up; null: it has not"),
    _time("reported", comment="time of the last report, with the following figures"),
    sa.Column("state", sa.TEXT),
    sa.Column("trouble", sa.TEXT, comment="the latest"),
    _time("troubled", comment="time of the latest trouble"),
    sa.Column("produced", sa.BIGINT, comment="rows, since the process began"),
    sa.Column("acknowledged", sa.BIGINT, comment="rows, since the process began"),
    sa.Column("waiting", sa.BIGINT, comment="rows in the spool"),
    _time("oldest", comment="time of the row that waits longest"),
    sa.Column("late", sa.BIGINT),
    sa.Column("refused", sa.BIGINT),
    sa.Column("repeated", sa.BIGINT),
    sa.Column("reconnected", sa.BIGINT),
    sa.Column("latency", sa.DOUBLE_PRECISION, comment="of the last call, in seconds"),
    sa.PrimaryKeyConstraint("table_name", name="writer_pkey"),
    comment="the writer of each table, and its state",
)

backup = sa.Table(
    "backup",
    metadata,
    sa.Column("folder", sa.TEXT, nullable=False),
    _time("made", nullable=False, comment="the end of the latest copy there"),
    sa.PrimaryKeyConstraint("folder", name="backup_pkey"),
    comment="where ringlog backup has copied this database to",
)

arrival = sa.Table(
    "arrival",
    metadata,
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("seq_no", sa.INTEGER, nullable=False, comment="the place that was taken last"),
    _time("time", nullable=False, comment="the newest of the ring then: another one came with its seq_no"),
    sa.PrimaryKeyConstraint("table_name", name="arrival_pkey"),
    # it changes with each such row: room on the page for dead versions
    postgresql_with={"fillfactor": 10},
    comment="last places of rows without seq_no in the rings",
)

imported_file = sa.Table(
    "imported_file",
    metadata,
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("file", sa.TEXT, nullable=False, comment="host:path"),
    sa.Column("digest", sa.TEXT, nullable=False, comment="SHA-256 of its bytes"),
    sa.Column("base", sa.INTEGER, nullable=False, comment="place of the ring after which its rows continue"),
    sa.Column("rows", sa.BIGINT, nullable=False, comment="number of its rows that were imported"),
    _time("began", nullable=False),
    _time("ended", comment="when the last row was taken; null: it was not"),
    sa.PrimaryKeyConstraint("table_name", "file", name="imported_file_pkey"),
    comment="files of old rows (ringlog load --backfill), and their progress",
)

last_call = sa.Table(
    "last_call",
    metadata,
    sa.Column("procedure", sa.TEXT, nullable=False),
    sa.Column("host", sa.TEXT, nullable=False, comment="as the client reports it"),
    sa.Column("program", sa.TEXT, nullable=False, comment="as the client reports it"),
    sa.Column("login", sa.TEXT, nullable=False),
    _time("called", nullable=False),
    _time("failed", comment="time of the last failed call"),
    sa.Column("number", sa.INTEGER, comment="of that error"),
    sa.Column("error", sa.TEXT),
    sa.PrimaryKeyConstraint("procedure", name="last_call_pkey"),
    comment="the last caller of each put over TDS",
)


# an event has a refused row whole: who may not read the table does not see it
_OF_READABLE_TABLES = sql_file(__file__, "ledger_of_readable_tables")


def restrict_events(connection: sa.Connection) -> None:
    """Shows events to readers of their tables only, if the database does not do so yet. As ringlog_owner."""
    query = sa.text("select relrowsecurity from pg_class where oid = 'ringlog.event'::regclass")
    if not connection.scalar(query):
        run(connection, sql.SQL(_OF_READABLE_TABLES).format(reader=sql.Literal(READER)))


def create_missing(connection: sa.Connection, notes: sa.MetaData = metadata) -> list[str]:
    """Creates the tables of `notes` that the database does not have, for readers to read; their names."""
    query = sa.text("select name from unnest(cast(:names as text[])) as name where to_regclass(name) is null")
    names = {*connection.scalars(query, {"names": [table.fullname for table in notes.sorted_tables]})}
    missing = [table for table in notes.sorted_tables if table.fullname in names]
    notes.create_all(connection, tables=missing, checkfirst=False)
    for table in missing:
        identifier = sql.Identifier("ringlog", table.name)
        run(connection, sql.SQL("grant select on {} to {}").format(identifier, sql.Identifier(READER)))
    return [table.name for table in missing]
