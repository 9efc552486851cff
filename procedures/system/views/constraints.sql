-- PostgreSQL's name of a constraint that was declared without one: t_pkey, t_a_key, t_a_check, t_a_fkey, with a number if that
-- is taken. A declared name of this form counts as one too.
create function sys.has_own_name(name name, of_table oid, kind "char") returns boolean
language sql stable
as $$
  select starts_with(name::text, tables.relname || '_') and substr(name::text, length(tables.relname) + 2) ~ case kind
    when 'p' then '^pkey\d*$' when 'u' then '_key\d*$' when 'f' then '_fkey\d*$' else '(^|_)check\d*$' end
  from pg_catalog.pg_class as tables
  where tables.oid = of_table
$$;

-- Keys and checks of tables: objects joined with PostgreSQL's catalogue by their oid, which has an index. A join by numbers
-- without an index would scan all objects for each.
create view sys.key_constraints as
select
  objects.*,
  (select indexes.number from sys.every_stored_index as indexes where indexes.oid = constraints.conindid) as unique_index_id,
  sys.has_own_name(constraints.conname, constraints.conrelid, constraints.contype) as is_system_named,
  true as is_enforced
from sys.shown_objects(null, '{PK,UQ}') as objects
join pg_catalog.pg_constraint as constraints on constraints.oid = objects.object_id::oid;
comment on view sys.key_constraints is 'SQL Server: Catalog Views, sys.key_constraints';

create view sys.check_constraints as
select
  objects.*,
  not coalesce((pg_catalog.to_jsonb(checks) ->> 'conenforced')::boolean, true) as is_disabled,
  false as is_not_for_replication,
  not checks.convalidated as is_not_trusted,
  -- one of a single column is the column's (0: the table's)
  case when cardinality(checks.conkey) = 1 then checks.conkey[1] else 0 end::integer as parent_column_id,
  sys.check_text(checks.oid) as definition,
  true as uses_database_collation,
  sys.has_own_name(checks.conname, checks.conrelid, checks.contype) as is_system_named
from sys.shown_objects(null, '{C}') as objects
join pg_catalog.pg_constraint as checks on checks.oid = objects.object_id::oid;
comment on view sys.check_constraints is 'SQL Server: Catalog Views, sys.check_constraints';

create view sys.foreign_keys as
select
  objects.*,
  constraints.confrelid::integer as referenced_object_id,
  (select indexes.number from sys.every_stored_index as indexes where indexes.oid = constraints.conindid) as key_index_id,
  not coalesce((pg_catalog.to_jsonb(constraints) ->> 'conenforced')::boolean, true) as is_disabled,
  false as is_not_for_replication,
  not constraints.convalidated as is_not_trusted,
  deleting.action::smallint as delete_referential_action,
  deleting.description::sys.sysname as delete_referential_action_desc,
  updating.action::smallint as update_referential_action,
  updating.description::sys.sysname as update_referential_action_desc,
  sys.has_own_name(constraints.conname, constraints.conrelid, constraints.contype) as is_system_named
from sys.shown_objects(null, '{F}') as objects
join pg_catalog.pg_constraint as constraints on constraints.oid = objects.object_id::oid
join (values
  ('a', 0, 'NO_ACTION'), ('r', 0, 'NO_ACTION'), ('c', 1, 'CASCADE'), ('n', 2, 'SET_NULL'), ('d', 3, 'SET_DEFAULT')
) as deleting (code, action, description) on deleting.code = constraints.confdeltype
join (values
  ('a', 0, 'NO_ACTION'), ('r', 0, 'NO_ACTION'), ('c', 1, 'CASCADE'), ('n', 2, 'SET_NULL'), ('d', 3, 'SET_DEFAULT')
) as updating (code, action, description) on updating.code = constraints.confupdtype;
comment on view sys.foreign_keys is 'SQL Server: Catalog Views, sys.foreign_keys';

create view sys.foreign_key_columns as
select
  objects.object_id as constraint_object_id,
  pairs.position::integer as constraint_column_id,
  objects.parent_object_id,
  pairs.from_column::integer as parent_column_id,
  constraints.confrelid::integer as referenced_object_id,
  pairs.to_column::integer as referenced_column_id
from sys.shown_objects(null, '{F}') as objects
join pg_catalog.pg_constraint as constraints on constraints.oid = objects.object_id::oid
cross join lateral unnest(constraints.conkey, constraints.confkey) with ordinality as pairs (from_column, to_column, position);
comment on view sys.foreign_key_columns is 'SQL Server: Catalog Views, sys.foreign_key_columns';

create view sys.sysforeignkeys as
select
  constraint_object_id as constid,
  parent_object_id as fkeyid,
  referenced_object_id as rkeyid,
  parent_column_id::smallint as fkey,
  referenced_column_id::smallint as rkey,
  constraint_column_id::smallint as keyno
from sys.foreign_key_columns;
comment on view sys.sysforeignkeys is 'SQL Server: System Compatibility Views, sys.sysforeignkeys';

create view sys.sysreferences as
select
  object_id as constid,
  parent_object_id as fkeyid,
  referenced_object_id as rkeyid,
  key_index_id::smallint as rkeyindid
from sys.foreign_keys;
comment on view sys.sysreferences is 'SQL Server: System Compatibility Views, sys.sysreferences';

create view sys.sysconstraints as
select
  object_id as constid,
  parent_object_id as id,
  0::smallint as colid, 0::smallint as spare1,
  case type when 'PK' then 1 when 'UQ' then 2 when 'F' then 3 when 'C' then 4 else 5 end as status,
  0 as actions, 0 as error
from sys.shown_objects(null, '{PK,UQ,F,C,D}');
comment on view sys.sysconstraints is 'SQL Server: System Compatibility Views, sys.sysconstraints';
