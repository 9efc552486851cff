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
