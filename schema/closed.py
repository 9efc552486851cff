"""The storage of closed rows: closed.<table> has the rows of a log again, thousands of them as one value for
each column.

A block has the rows of a log from `begins` on and before `ends`, by time and seq_no. The row for `time` is
the block itself; every other one has the values of a column, as ringlog.history.packing packs them. A block
is identified by more than names, so that no block of a former log or column is used: by the partition of its
rows (`part`), which must belong to the log, and by the column's name, number and type, which must be the
current ones. Times of late rows (ringlog.summary_mark) end a block at once; ringlog.history.closing makes
another.

The table of a log is made with its first block.
"""

from collections.abc import Sequence
from datetime import datetime

import psycopg
from psycopg import sql

from ringlog.schema import catalogue
from ringlog.schema.layout import CLOSED, LOG_TABLES, READER, TABLE_READER

_CREATE = """
create table {storage} (
  column_name text not null,
  begins timestamptz not null,
  ends timestamptz not null,
  rows integer not null,
  part oid not null,
  attnum smallint not null,
  type oid not null,
  modifier integer not null,
  content bytea not null,
  primary key (column_name, begins)
) with (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1);
-- compressed by itself, and read a column at a time
alter table {storage} alter column content set storage external, alter column content set statistics 0;
create index on {storage} (begins);
-- who may read all of the log
alter table {storage} enable row level security;
create policy log on {storage} for select
  using (has_table_privilege({log}::regclass, 'select') and not row_security_active({log}::regclass));
grant select on {storage} to {readers};
comment on table {storage} is 'rows of the log again, in columns: see ringlog.schema.closed';
comment on column {storage}.column_name is 'column of the log';
comment on column {storage}.begins is 'time of the block''s first row';
comment on column {storage}.ends is 'end of the block''s time, exclusive';
comment on column {storage}.rows is 'number of rows of the block';
comment on column {storage}.part is 'oid of the log''s partition';
comment on column {storage}.attnum is 'number of the column in the partition';
comment on column {storage}.type is 'oid of the column''s type';
comment on column {storage}.modifier is 'modifier of the type';
comment on column {storage}.content is 'the values, packed: see ringlog.history.packing'
"""


def storage(table: str) -> sql.Identifier:
    return sql.Identifier(CLOSED, table)


def is_there(connection: psycopg.Connection, table: str) -> bool:
    return catalogue.exists(connection, CLOSED, table)


def create_missing(connection: psycopg.Connection, table: str) -> None:
    """Makes the storage of a log's closed rows, as ringlog_owner."""
    if is_there(connection, table):
        return
    log = sql.Literal(sql.Identifier(LOG_TABLES, table).as_string())
    readers = sql.SQL(", ").join(map(sql.Identifier, (READER, TABLE_READER)))
    names = {"storage": storage(table), "log": log, "readers": readers}
    connection.execute(sql.SQL(_CREATE).format(**names))


def reopen(connection: psycopg.Connection, table: str, runs: Sequence[tuple[datetime, datetime]]) -> None:
    """Deletes the blocks that overlap one of these ranges of time."""
    if not runs or not is_there(connection, table):
        return
    connection.execute(
        sql.SQL(
            "delete from {storage} where begins = any(array("
            " select block.begins from unnest(%s::timestamptz[], %s::timestamptz[]) as run (start, stop)"
            " join {storage} as block on block.column_name = 'time'"
            " and block.begins < run.stop and block.ends > run.start))"
        ).format(storage=storage(table)),
        [[start for start, _ in runs], [stop for _, stop in runs]],
    )
