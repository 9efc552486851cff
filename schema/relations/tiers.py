"""The database's records of its logs' tiers while rows move between them."""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.facility import KEEP_DROPPED
from ringlog.schema.own_tables import bigint, boolean, integer, own_column, own_table, real, text, timestamp
from ringlog.schema.session import AnyConnection, driver

late_row = own_table(
    "late_row",
    text("partition", "of schema log"),
    timestamp("time"),
    integer("seq_no"),
    sa.Index("late_row_partition_idx", "partition"),
    comment="rows that arrived in partitions while these were archived; see record_late_row",
)

summarised = own_table(
    "summarised",
    text("table_name", key=True),
    own_column(postgresql.ARRAY(sa.INTEGER), "levels", "spans in seconds, shortest first"),
    timestamp("until", "summaries hold the rows before this", null=True),
    comment="up to when each table is summarised",
)

summary_mark = own_table(
    "summary_mark",
    text("table_name"),
    timestamp("time"),
    text("column_name", "of samples: number of the signal; null: all", null=True),
    sa.Index("summary_mark_idx", "table_name", "time"),
    comment="times of rows that arrived after their span was summarised: its summaries are made again",
)

closed = own_table(
    "closed",
    text("table_name", key=True),
    timestamp("until", "end of the last block"),
    comment="tables with closed rows as columns: see ringlog.schema.closed",
)

dropped = own_table(
    "dropped",
    text("table_name", key=True),
    timestamp("until", "end of the latest week"),
    comment="end of the weeks that retention has removed of each table: their summaries are never made again,"
    " even with a longer retention",
)

housekeeping = own_table(
    "housekeeping",
    boolean("one", None, sa.CheckConstraint("one"), key=True, default=sa.true()),
    timestamp(
        "trusted", "PostgreSQL's clock in the latest round that trusted it; null: no round yet", null=True
    ),
    timestamp("seen", "PostgreSQL's clock in the latest round", null=True),
    timestamp(
        "jumped", "since then rows agree with a clock that is not trusted; null: it is trusted", null=True
    ),
    text(
        "keep_dropped",
        "interval for which weeks past retention are set aside; 0: they are dropped at once",
        default=str(KEEP_DROPPED),
    ),
    comment="one row: the clock of the latest round, see ringlog.schema.clock",
)

damage = own_table(
    "damage",
    text("work", "archive, summaries or ring", key=True),
    text("table_name", key=True),
    text("message"),
    timestamp("since"),
    comment="work that PostgreSQL refuses because of damaged pages, until it succeeds",
)

set_aside = own_table(
    "set_aside",
    text("relation", "in schema set_aside", key=True),
    text("table_name"),
    timestamp("begins"),
    timestamp("ends"),
    timestamp("since"),
    comment="weeks past retention, until they are dropped",
)

history = own_table(
    "history",
    text("online", "interval for which weeks stay in the log"),
    text("archive", "folder of older weeks"),
    text(
        "keep_replaced", "interval for which files stay after they have left the manifest", default="30 days"
    ),
    comment="one row: the archive of old weeks; no row: nothing is archived",
)

cold_week = own_table(
    "cold_week",
    text("table_name", key=True),
    timestamp("begins", key=True),
    timestamp("ends"),
    text("file", "below the archive's folder"),
    bigint("rows"),
    bigint("bytes"),
    text("sha256"),
    text(
        "footer",
        "SHA-256 of the file's footer, which readers check; null: written by an earlier version",
        null=True,
    ),
    timestamp("written", default=sa.func.now()),
    timestamp(
        "recalled_until",
        "the week was recalled into the log until then; null: it is only in the archive",
        null=True,
    ),
    comment="the manifest: weeks whose rows are in Parquet files",
)

archive_field = own_table(
    "archive_field",
    text("table_name", key=True),
    integer("field_id", key=True),
    text("name", "in the Iceberg table; never used for another field"),
    text("column_name"),
    text("type", "the widest of its values"),
    boolean("is_gone", "the column was dropped from the log"),
    boolean("is_by_name", "files without field ids contain it, under its name"),
    comment="fields of the files of each log: see ringlog.history.archive.fields",
)

migration = own_table(
    "migration",
    text("table_name", key=True),
    text("source", "where the rows come from, without a password", key=True),
    timestamp("reached", "its rows before this are in the archive", null=True),
    timestamp("until", "the goal"),
    bigint("rows", "copied by all runs", default="0"),
    bigint("values", "copied by all runs, without keys", default="0"),
    bigint("left_out", "without a time, repeated, refused", default="0"),
    text("checksum", "of the latest week, as received", null=True),
    timestamp("began", "the latest run"),
    real("begun_at", "fraction of the source at its begin"),
    real("fraction", "of the source that has been read"),
    timestamp("noted", "the latest week"),
    comment="old rows that go straight into the archive (ringlog migrate), and the progress of each source",
)

# It has no column table_name: when a table moves, its rows are deleted from all tables with that column.
archive_file = own_table(
    "archive_file",
    text("file", "below the archive's folder", key=True),
    timestamp("begun", default=sa.func.now()),
    timestamp(
        "left_at", "when it left the manifest; null: it was begun and is not in the manifest yet", null=True
    ),
    comment="files that this database has written and its manifest does not name: no others are ever deleted",
)


def begin_housekeeping(connection: sa.Connection) -> None:
    """Makes the row of `housekeeping`."""
    connection.execute(postgresql.insert(housekeeping).values(one=True).on_conflict_do_nothing())


def archived_tables(connection: AnyConnection) -> set[str]:
    """The tables with rows in the archive; a file without rows does not count."""
    query = "select distinct table_name from ringlog.cold_week where rows > 0"
    return {table for (table,) in driver(connection).execute(query)}


def leave_manifest(connection: AnyConnection, files: Collection[str]) -> None:
    """Records that these files are not in the manifest: they are deleted when keep_replaced is over."""
    driver(connection).execute(
        # a clock that is slow must not shorten keep_replaced
        "insert into ringlog.archive_file (file, left_at)"
        " select unnest(%s::text[]), greatest(now(), (select trusted from ringlog.housekeeping))"
        " on conflict (file) do update set left_at = excluded.left_at",
        [[*files]],
    )


archive_owner = own_table(
    "archive_owner",
    text("archive", "identity of the folder, as in its ringlog.json", key=True),
    text("token", "of the latest round; null: this database was restored", null=True),
    text("previous", "token of the round before", null=True),
    text("system_identifier", "of the PostgreSQL that wrote this"),
    bigint("database", "oid of the database that wrote this"),
    comment="the archive that this database writes: a copy of the database finds that it is not the writer",
)


def note_dropped(connection: AnyConnection, table: str, until: datetime) -> None:
    """Records that retention has removed a week of a log, or of its archive."""
    driver(connection).execute(
        "insert into ringlog.dropped (table_name, until) values (%s, %s) on conflict (table_name)"
        " do update set until = greatest(dropped.until, excluded.until)",
        [table, until],
    )
