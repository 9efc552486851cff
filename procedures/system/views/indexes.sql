-- Indexes of tables. Index 0 is the table itself, a heap; the others begin at 2, as none is clustered.
create view sys.every_index as
select
  relations.oid as relation,
  relations.name as table_name,
  indexes.indexrelid as oid,
  sys.shown_index(classes.oid, constraints.oid, constraints.conname, classes.relname, tables.relname) collate "C" as name,
  (1 + row_number() over (
    -- by the visible column, so that a query for one relation numbers only its indexes
    partition by relations.oid order by indexes.indisprimary desc, indexes.indexrelid
  ))::integer as number,
  indexes.indisunique as is_unique,
  indexes.indisprimary as is_primary_key,
  indexes.indkey as columns,
  indexes.indoption as options,
  indexes.indnkeyatts as key_columns,
  '(' || sys.shown_expression(pg_catalog.pg_get_expr(indexes.indpred, indexes.indrelid)) || ')' as filter
from sys.every_relation as relations
join pg_catalog.pg_index as indexes on indexes.indrelid = sys.stored_in(relations.oid)
join pg_catalog.pg_class as classes on classes.oid = indexes.indexrelid
join pg_catalog.pg_class as tables on tables.oid = relations.oid
left join pg_catalog.pg_constraint as constraints
  on constraints.conindid = indexes.indexrelid and constraints.conrelid = indexes.indrelid
  and constraints.contype in ('p', 'u', 'x');

create view sys.every_index_column as
select
  indexes.relation,
  indexes.table_name,
  indexes.oid,
  indexes.number,
  places.place::integer as place,
  places.column,
  sys.shown_column(indexes.relation, columns.attnum, columns.attname) collate "C" as name,
  places.place <= indexes.key_columns as is_key,
  indexes.options[places.place - 1] & 1 = 1 as is_descending
from sys.every_index as indexes
cross join lateral unnest(indexes.columns::smallint[]) with ordinality as places ("column", place)
-- an expression is no column
join pg_catalog.pg_attribute as columns
  on columns.attrelid = indexes.relation and columns.attnum = places.column and columns.attnum > 0;

create view sys.indexes as
select
  listed.relation::integer as object_id,
  listed.name::sys.sysname as name,
  listed.number as index_id,
  case listed.number when 0 then 0 else 2 end::smallint as type,
  case listed.number when 0 then 'HEAP' else 'NONCLUSTERED' end::sys.sysname as type_desc,
  listed.is_unique,
  1 as data_space_id,
  false as ignore_dup_key,
  listed.is_primary_key,
  exists (
    select from sys.every_constraint as constraints
    where constraints.index = listed.oid and constraints.type = 'UQ'
  ) as is_unique_constraint,
  0::smallint as fill_factor,
  false as is_padded,
  false as is_disabled,
  false as is_hypothetical,
  true as allow_row_locks,
  true as allow_page_locks,
  listed.filter is not null as has_filter,
  listed.filter as filter_definition
from (
  select relation, oid, name, number, is_unique, is_primary_key, filter
  from sys.every_index
  union all
  select oid, null, null, 0, false, false, null
  from sys.every_relation
  where type = 'U'
) as listed;

comment on view sys.indexes is 'SQL Server: Catalog Views, sys.indexes';

create view sys.stats as
select
  listed.relation::integer as object_id,
  listed.name::sys.sysname as name,
  listed.number as stats_id,
  false as auto_created,
  false as user_created,
  false as no_recompute,
  listed.filter is not null as has_filter,
  listed.filter as filter_definition,
  false as is_temporary,
  false as is_incremental
from sys.every_index as listed;

comment on view sys.stats is 'SQL Server: Catalog Views, sys.stats: those of indexes';

create view sys.index_columns as
select
  relation::integer as object_id,
  number as index_id,
  place as index_column_id,
  "column"::integer as column_id,
  case when is_key then place else 0 end::smallint as key_ordinal,
  0::smallint as partition_ordinal,
  is_descending as is_descending_key,
  not is_key as is_included_column
from sys.every_index_column;

comment on view sys.index_columns is 'SQL Server: Catalog Views, sys.index_columns';

create function sys.parts_of(relation oid) returns table (relid oid)
language sql stable
as $$
  select sys.stored_in(relation)
  union
  select parts.relid from pg_catalog.pg_partition_tree(sys.stored_in(relation)) as parts
$$;

comment on function sys.parts_of(oid) is 'A table and the weeks it consists of.';

-- A table (its index 0) and its indexes. Weeks of a table are not shown as partitions.
create view sys.every_partition as
select
  relations.oid as relation,
  relations.oid as oid,
  0 as number
from sys.every_relation as relations
where relations.type = 'U'
union all
select indexes.relation, indexes.oid, indexes.number
from sys.every_index as indexes;

create view sys.partitions as
select
  parts.oid::bigint as partition_id,
  parts.relation::integer as object_id,
  parts.number as index_id,
  1 as partition_number,
  parts.oid::bigint as hobt_id,
  (
    -- rows by PostgreSQL's statistics, the sum of all weeks
    select coalesce(sum(pg_catalog.pg_stat_get_live_tuples(weeks.relid)), 0)::bigint
    from sys.parts_of(parts.relation) as weeks
  ) as rows
from sys.every_partition as parts;

comment on view sys.partitions is
'SQL Server: Catalog Views, sys.partitions, one for a table and for each of its indexes; rows are those of PostgreSQL''s '
'statistics';

create view sys.dm_db_partition_stats as
select
  partition_id,
  object_id,
  index_id,
  partition_number,
  rows as row_count,
  pages.used as used_page_count,
  pages.used as reserved_page_count
from sys.partitions
cross join lateral (
  select (
    case index_id
      when 0 then (
        select coalesce(sum(pg_catalog.pg_table_size(weeks.relid)), 0)
        from sys.parts_of(object_id::oid) as weeks
      )
      else (
        select coalesce(sum(pg_catalog.pg_relation_size(weeks.relid)), 0)
        from sys.parts_of(partition_id::oid) as weeks
      )
    end / 8192
  )::bigint as used
) as pages;

comment on view sys.dm_db_partition_stats is
'SQL Server: sys.dm_db_partition_stats; pages of 8,192 bytes';

create view sys.sysindexes as
select
  listed.relation::integer as id,
  -- 2: unique, 2048: of the primary key
  case when listed.is_unique then 2 else 0 end + case when listed.is_primary_key then 2048 else 0 end as status,
  null::bytea as first,
  listed.number::smallint as indid,
  null::bytea as root,
  0::smallint as minlen,
  -- an expression is no column
  (
    select count(*) from unnest(listed.columns::smallint[]) as places ("column") where places.column > 0
  )::smallint as keycnt,
  0::smallint as groupid,
  (pg_catalog.pg_relation_size(listed.oid) / 8192)::integer as dpages,
  (pg_catalog.pg_relation_size(listed.oid) / 8192)::integer as reserved,
  (pg_catalog.pg_relation_size(listed.oid) / 8192)::integer as used,
  counted.rows as rowcnt,
  0 as rowmodctr,
  0::smallint as "origfillfactor",
  listed.name::sys.sysname as name,
  counted.rows::integer as rows
from (
  select relation, oid, name, number, is_unique, is_primary_key, columns
  from sys.every_index
  union all
  select oid, oid, name, 0, false, false, null
  from sys.every_relation
  where type = 'U'
) as listed
-- as in sys.partitions
cross join lateral (
  select coalesce(sum(pg_catalog.pg_stat_get_live_tuples(parts.relid)), 0)::bigint as rows
  from sys.parts_of(listed.relation) as parts
) as counted;

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
