"""The database's records of its logs' tiers while rows move between them."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.facility import KEEP_DROPPED

metadata = sa.MetaData(schema="ringlog")

late_row = sa.Table(
    "late_row",
    metadata,
    sa.Column("partition", sa.TEXT, nullable=False, comment="of schema log"),
    sa.Column("time", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("seq_no", sa.INTEGER, nullable=False),
    sa.Index("late_row_partition_idx", "partition"),
    comment="rows that arrived in partitions while these were archived; see record_late_row",
)

summarised = sa.Table(
    "summarised",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column(
        "levels", postgresql.ARRAY(sa.INTEGER), nullable=False, comment="spans in seconds, shortest first"
    ),
    sa.Column("until", postgresql.TIMESTAMP(timezone=True), comment="summaries hold the rows before this"),
    comment="up to when each table is summarised",
)

summary_mark = sa.Table(
    "summary_mark",
    metadata,
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("time", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("column_name", sa.TEXT, comment="of samples: number of the signal; null: all"),
    sa.Index("summary_mark_idx", "table_name", "time"),
    comment="times of rows that arrived after their span was summarised: its summaries are made again",
)

closed = sa.Table(
    "closed",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("until", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="end of the last block"),
    comment="tables with closed rows as columns: see ringlog.schema.closed",
)

dropped = sa.Table(
    "dropped",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("until", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="end of the latest week"),
    comment="end of the weeks that retention has removed of each table: their summaries are never made again,"
    " even with a longer retention",
)

housekeeping = sa.Table(
    "housekeeping",
    metadata,
    sa.Column("one", sa.BOOLEAN, sa.CheckConstraint("one"), primary_key=True, server_default=sa.true()),
    sa.Column(
        "trusted",
        postgresql.TIMESTAMP(timezone=True),
        comment="PostgreSQL's clock in the latest round that trusted it; null: no round yet",
    ),
    sa.Column("seen", postgresql.TIMESTAMP(timezone=True), comment="PostgreSQL's clock in the latest round"),
    sa.Column(
        "jumped",
        postgresql.TIMESTAMP(timezone=True),
        comment="since then rows agree with a clock that is not trusted; null: it is trusted",
    ),
    sa.Column(
        "keep_dropped",
        sa.TEXT,
        nullable=False,
        server_default=str(KEEP_DROPPED),
        comment="interval for which weeks past retention are set aside; 0: they are dropped at once",
    ),
    comment="one row: the clock of the latest round, see ringlog.schema.clock",
)

damage = sa.Table(
    "damage",
    metadata,
    sa.Column("work", sa.TEXT, primary_key=True, comment="archive, summaries or ring"),
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("message", sa.TEXT, nullable=False),
    sa.Column("since", postgresql.TIMESTAMP(timezone=True), nullable=False),
    comment="work that PostgreSQL refuses because of damaged pages, until it succeeds",
)

set_aside = sa.Table(
    "set_aside",
    metadata,
    sa.Column("relation", sa.TEXT, primary_key=True, comment="in schema set_aside"),
    sa.Column("table_name", sa.TEXT, nullable=False),
    sa.Column("begins", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("ends", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("since", postgresql.TIMESTAMP(timezone=True), nullable=False),
    comment="weeks past retention, until they are dropped",
)

history = sa.Table(
    "history",
    metadata,
    sa.Column("online", sa.TEXT, nullable=False, comment="interval for which weeks stay in the log"),
    sa.Column("archive", sa.TEXT, nullable=False, comment="folder of older weeks"),
    sa.Column(
        "keep_replaced",
        sa.TEXT,
        nullable=False,
        server_default="30 days",
        comment="interval for which files stay after they have left the manifest",
    ),
    comment="one row: the archive of old weeks; no row: nothing is archived",
)

cold_week = sa.Table(
    "cold_week",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("begins", postgresql.TIMESTAMP(timezone=True), primary_key=True),
    sa.Column("ends", postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column("file", sa.TEXT, nullable=False, comment="below the archive's folder"),
    sa.Column("rows", sa.BIGINT, nullable=False),
    sa.Column("bytes", sa.BIGINT, nullable=False),
    sa.Column("sha256", sa.TEXT, nullable=False),
    sa.Column(
        "footer",
        sa.TEXT,
        comment="SHA-256 of the file's footer, which readers check; null: written by an earlier version",
    ),
    sa.Column("written", postgresql.TIMESTAMP(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column(
        "recalled_until",
        postgresql.TIMESTAMP(timezone=True),
        comment="the week was recalled into the log until then; null: it is only in the archive",
    ),
    comment="the manifest: weeks whose rows are in Parquet files",
)

archive_field = sa.Table(
    "archive_field",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("field_id", sa.INTEGER, primary_key=True),
    sa.Column("name", sa.TEXT, nullable=False, comment="in the Iceberg table; never used for another field"),
    sa.Column("column_name", sa.TEXT, nullable=False),
    sa.Column("type", sa.TEXT, nullable=False, comment="the widest of its values"),
    sa.Column("is_gone", sa.BOOLEAN, nullable=False, comment="the column was dropped from the log"),
    sa.Column(
        "is_by_name", sa.BOOLEAN, nullable=False, comment="files without field ids contain it, under its name"
    ),
    comment="fields of the files of each log: see ringlog.history.archive.fields",
)

migration = sa.Table(
    "migration",
    metadata,
    sa.Column("table_name", sa.TEXT, primary_key=True),
    sa.Column("source", sa.TEXT, primary_key=True, comment="where the rows come from, without a password"),
    sa.Column(
        "reached", postgresql.TIMESTAMP(timezone=True), comment="its rows before this are in the archive"
    ),
    sa.Column("until", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="the goal"),
    sa.Column("rows", sa.BIGINT, nullable=False, server_default="0", comment="copied by all runs"),
    sa.Column(
        "values", sa.BIGINT, nullable=False, server_default="0", comment="copied by all runs, without keys"
    ),
    sa.Column(
        "left_out", sa.BIGINT, nullable=False, server_default="0", comment="without a time, repeated, refused"
    ),
    sa.Column("checksum", sa.TEXT, comment="of the latest week, as received"),
    sa.Column("began", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="the latest run"),
    sa.Column("begun_at", sa.REAL, nullable=False, comment="fraction of the source at its begin"),
    sa.Column("fraction", sa.REAL, nullable=False, comment="of the source that has been read"),
    sa.Column("noted", postgresql.TIMESTAMP(timezone=True), nullable=False, comment="the latest week"),
    comment="old rows that go straight into the archive (ringlog migrate), and the progress of each source",
)

# It has no column table_name: when a table moves, its rows are deleted from all tables with that column.
archive_file = sa.Table(
    "archive_file",
    metadata,
    sa.Column("file", sa.TEXT, primary_key=True, comment="below the archive's folder"),
    sa.Column("begun", postgresql.TIMESTAMP(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column(
        "left_at",
        postgresql.TIMESTAMP(timezone=True),
        comment="when it left the manifest; null: it was begun and is not in the manifest yet",
    ),
    comment="files that this database has written and its manifest does not name: no others are ever deleted",
)


def begin_housekeeping(connection: sa.Connection) -> None:
    """Makes the row of `housekeeping`."""
    connection.execute(postgresql.insert(housekeeping).values(one=True).on_conflict_do_nothing())


def archived_tables(connection: sa.Connection) -> set[str]:
    """The tables with rows in the archive; a file without rows does not count."""
    return {*connection.scalars(sa.select(cold_week.c.table_name).distinct().where(cold_week.c.rows > 0))}


def leave_manifest(connection: sa.Connection, files: sa.Select[tuple[str]]) -> None:
    """Records that these files are not in the manifest: they are deleted when keep_replaced is over."""
    # a clock that is slow must not shorten keep_replaced
    now = sa.func.greatest(sa.func.now(), sa.select(housekeeping.c.trusted).scalar_subquery())
    left = files.add_columns(now)
    record = postgresql.insert(archive_file).from_select(["file", "left_at"], left)
    again = {"left_at": record.excluded.left_at}
    connection.execute(record.on_conflict_do_update(index_elements=["file"], set_=again))


archive_owner = sa.Table(
    "archive_owner",
    metadata,
    sa.Column("archive", sa.TEXT, primary_key=True, comment="identity of the folder, as in its ringlog.json"),
    sa.Column("token", sa.TEXT, comment="of the latest round; null: this database was restored"),
    sa.Column("previous", sa.TEXT, comment="token of the round before"),
    sa.Column("system_identifier", sa.TEXT, nullable=False, comment="of the PostgreSQL that wrote this"),
    sa.Column("database", sa.BIGINT, nullable=False, comment="oid of the database that wrote this"),
    comment="the archive that this database writes: a copy of the database finds that it is not the writer",
)


def note_dropped(connection: sa.Connection, table: str, until: datetime) -> None:
    """Records that retention has removed a week of a log, or of its archive."""
    row = postgresql.insert(dropped).values(table_name=table, until=until)
    later = sa.func.greatest(dropped.c.until, row.excluded.until)
    connection.execute(row.on_conflict_do_update(index_elements=["table_name"], set_={"until": later}))
