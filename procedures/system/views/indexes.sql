-- Indexes of tables. The clustered one has the number 1: the primary key, unless a comment says otherwise (tsql.cluster);
-- others begin at 2. A table without a clustered one has index 0, a heap.
-- Those of all tables, by the table in which the rows are stored:
create view sys.every_unnumbered_index as
select
  indexes.indrelid as stored,
  indexes.indexrelid as oid,
  -- that of `create index` has its table's name in front, because in PostgreSQL indexes and tables share a namespace; a long one
  -- is in its comment
  coalesce(declaration.shown, constraints.conname::text, case
    when starts_with(classes.relname::text, tables.relname || '.') then substr(classes.relname::text, length(tables.relname) + 2)
    else classes.relname::text
  end) collate "C" as name,
  case when indexes.indisprimary then coalesce(words.description !~ '^T-SQL "([^"]|"")+" nonclustered\M', true)
    else coalesce(words.description ~ '^T-SQL "([^"]|"")+" clustered\M', false) end as is_clustered,
  indexes.indisunique as is_unique,
  indexes.indisprimary as is_primary_key,
  constraints.contype is not distinct from 'u' as is_unique_constraint,
  indexes.indkey as columns,
  indexes.indoption as options,
  indexes.indnkeyatts as key_columns,
  sys.expression_text(pg_catalog.pg_get_expr(indexes.indpred, indexes.indrelid), indexes.indrelid) as filter
from pg_catalog.pg_index as indexes
join pg_catalog.pg_class as classes on classes.oid = indexes.indexrelid
join pg_catalog.pg_class as tables on tables.oid = indexes.indrelid
left join pg_catalog.pg_constraint as constraints
  on constraints.conindid = indexes.indexrelid and constraints.conrelid = indexes.indrelid
  and constraints.contype in ('p', 'u', 'x')
left join pg_catalog.pg_description as comments
  on comments.objoid = coalesce(constraints.oid, classes.oid) and comments.objsubid = 0
  and comments.classoid = case when constraints.oid is null then 'pg_catalog.pg_class' else 'pg_catalog.pg_constraint' end::regclass
left join pg_catalog.pg_description as words
  on words.objoid = classes.oid and words.classoid = 'pg_catalog.pg_class'::regclass and words.objsubid = 0
cross join lateral sys.declaration(comments.description) as declaration;

create view sys.every_stored_index as
select
  indexes.*,
  case when indexes.is_clustered then 1 else (
    select 2 + count(*)::integer from sys.every_unnumbered_index as earlier
    where earlier.stored = indexes.stored and not earlier.is_clustered and earlier.oid < indexes.oid
  ) end as number
from sys.every_unnumbered_index as indexes;

create view sys.every_stored_index_column as
select
  indexes.*,
  members.position::integer as position,
  members.column,
  members.position <= indexes.key_columns as is_key,
  coalesce(indexes.options[members.position - 1] & 1 = 1, false) as is_descending
from sys.every_stored_index as indexes
cross join lateral unnest(indexes.columns::smallint[]) with ordinality as members ("column", position)
-- an expression is no column
where members.column > 0;

create view sys.every_stored_heap as
select tables.oid
from pg_catalog.pg_class as tables
where tables.relkind in ('r', 'p', 'f')
  and not exists (
    select from sys.every_unnumbered_index as indexes where indexes.stored = tables.oid and indexes.is_clustered
  );

create view sys.every_index as
select relations.oid as relation, relations.name as table_name, indexes.*
from sys.every_relation as relations
join sys.every_stored_index as indexes on indexes.stored = relations.stored;

create view sys.every_index_column as
select
  relations.oid as relation,
  indexes.oid, indexes.number, indexes.position,
  coalesce(declaration.shown, columns.attname::text) collate "C" as name,
  indexes.is_key, indexes.is_descending
from sys.every_relation as relations
join sys.every_stored_index_column as indexes on indexes.stored = relations.stored
join pg_catalog.pg_attribute as columns on columns.attrelid = relations.oid and columns.attnum = indexes.column
left join pg_catalog.pg_description as comments
  on comments.objoid = columns.attrelid and comments.classoid = 'pg_catalog.pg_class'::regclass and comments.objsubid = columns.attnum
cross join lateral sys.declaration(comments.description) as declaration;

create view sys.indexes as
select
  relations.object_id,
  listed.name::sys.sysname as name,
  listed.number as index_id,
  least(listed.number, 2)::smallint as type,
  case listed.number when 0 then 'HEAP' when 1 then 'CLUSTERED' else 'NONCLUSTERED' end::sys.sysname as type_desc,
  listed.is_unique, 1 as data_space_id, false as ignore_dup_key, listed.is_primary_key, listed.is_unique_constraint,
  0::smallint as fill_factor, false as is_padded, false as is_disabled, false as is_hypothetical,
  true as allow_row_locks, true as allow_page_locks,
  listed.filter is not null as has_filter,
  listed.filter as filter_definition
from sys.shown_relations(null) as relations
join (
  select stored, name, number, is_unique, is_primary_key, is_unique_constraint, filter
  from sys.every_stored_index
  union all
  select oid, null, 0, false, false, false, null
  from sys.every_stored_heap
) as listed on listed.stored = relations.stored
where relations.type = 'U' or listed.number > 0;
comment on view sys.indexes is 'SQL Server: Catalog Views, sys.indexes';

create view sys.stats as
select
  relations.object_id,
  listed.name::sys.sysname as name,
  listed.number as stats_id,
  false as auto_created, false as user_created, false as no_recompute,
  listed.filter is not null as has_filter,
  listed.filter as filter_definition,
  false as is_temporary, false as is_incremental
from sys.shown_relations(null) as relations
join sys.every_stored_index as listed on listed.stored = relations.stored;
comment on view sys.stats is 'SQL Server: Catalog Views, sys.stats: those of indexes';

create view sys.index_columns as
select
  relations.object_id,
  indexes.number as index_id,
  indexes.position as index_column_id,
  indexes."column"::integer as column_id,
  case when indexes.is_key then indexes.position else 0 end::smallint as key_ordinal,
  0::smallint as partition_ordinal,
  indexes.is_descending as is_descending_key,
  not indexes.is_key as is_included_column
from sys.shown_relations(null) as relations
join sys.every_stored_index_column as indexes on indexes.stored = relations.stored;
comment on view sys.index_columns is 'SQL Server: Catalog Views, sys.index_columns';

create function sys.parts_of(relation oid) returns table (relid oid)
language sql stable
as $$
  select sys.stored_in(relation)
  union
  select parts.relid from pg_catalog.pg_partition_tree(sys.stored_in(relation)) as parts
$$;
comment on function sys.parts_of(oid) is 'A table and the weeks it consists of.';

-- By PostgreSQL's statistics, which other sessions' changes reach within a second, and what this session has not yet added to
-- them.
create function sys.live_rows(stored oid) returns bigint
language sql stable
as $$
  select pg_catalog.pg_stat_get_live_tuples(stored) + pg_catalog.pg_stat_get_xact_tuples_inserted(stored)
    - pg_catalog.pg_stat_get_xact_tuples_deleted(stored)
$$;

-- The sum of all weeks; a table without partitions has no tree.
create function sys.rows_of(stored oid) returns bigint
language sql stable
as $$
  select greatest(coalesce(
    (select sum(sys.live_rows(relid)) from pg_catalog.pg_partition_tree(stored)), sys.live_rows(stored), 0), 0)::bigint
$$;

create function sys.pages_of(stored oid) returns bigint
language sql stable
as $$
  select coalesce(
    (select sum(pg_catalog.pg_table_size(relid)) from pg_catalog.pg_partition_tree(stored)),
    pg_catalog.pg_table_size(stored), 0)::bigint / 8192
$$;

-- A table (its index 0, or its primary key) and its other indexes. Weeks of a table are not shown as partitions.
create view sys.partitions as
select
  listed.oid::bigint as partition_id,
  relations.object_id,
  listed.number as index_id,
  1 as partition_number,
  listed.oid::bigint as hobt_id,
  sys.rows_of(relations.stored) as rows
from sys.shown_relations(null) as relations
join (
  select stored, oid, number from sys.every_stored_index
  union all
  select oid, oid, 0 from sys.every_stored_heap
) as listed on listed.stored = relations.stored
where relations.type = 'U' or listed.number > 0;
comment on view sys.partitions is
'SQL Server: Catalog Views, sys.partitions, one for a table and for each of its indexes; rows are those of PostgreSQL''s '
'statistics';

create view sys.dm_db_partition_stats as
select
  partition_id, object_id, index_id, partition_number,
  rows as row_count,
  pages.used as used_page_count,
  pages.used as reserved_page_count
from sys.partitions
cross join lateral (
  select case when index_id < 2 then sys.pages_of(sys.stored_in(object_id::oid)) else 0 end
    + case when index_id > 0 then sys.pages_of(partition_id::oid) else 0 end
) as pages (used);
comment on view sys.dm_db_partition_stats is 'SQL Server: sys.dm_db_partition_stats; pages of 8,192 bytes';

create view sys.sysindexes as
select
  relations.object_id as id,
  -- 2: unique, 2048: of the primary key
  case when listed.is_unique then 2 else 0 end + case when listed.is_primary_key then 2048 else 0 end as status,
  null::bytea as first,
  listed.number::smallint as indid,
  null::bytea as root, 0::smallint as minlen,
  -- an expression is no column
  (
    select count(*) from unnest(listed.columns::smallint[]) as members ("column") where members.column > 0
  )::smallint as keycnt,
  0::smallint as groupid,
  (pg_catalog.pg_relation_size(case listed.number when 1 then listed.stored else listed.oid end) / 8192)::integer as dpages,
  (pg_catalog.pg_relation_size(case listed.number when 1 then listed.stored else listed.oid end) / 8192)::integer as reserved,
  (pg_catalog.pg_relation_size(case listed.number when 1 then listed.stored else listed.oid end) / 8192)::integer as used,
  sys.rows_of(relations.stored) as rowcnt,
  0 as rowmodctr, 0::smallint as "origfillfactor",
  coalesce(listed.name::sys.sysname, relations.name) as name,
  sys.rows_of(relations.stored)::integer as rows
from sys.shown_relations(null) as relations
join (
  select stored, oid, name, number, is_unique, is_primary_key, columns
  from sys.every_stored_index
  union all
  select oid, oid, null, 0, false, false, null
  from sys.every_stored_heap
) as listed on listed.stored = relations.stored
where relations.type = 'U' or listed.number > 0;
comment on view sys.sysindexes is
'SQL Server: System Compatibility Views, sys.sysindexes. Pages are of 8,192 bytes; those of a log are in its partitions.';

create view sys.sysindexkeys as
select
  object_id as id,
  index_id::smallint as indid,
  column_id::smallint as colid,
  key_ordinal as keyno
from sys.index_columns;
comment on view sys.sysindexkeys is 'SQL Server: System Compatibility Views, sys.sysindexkeys';
