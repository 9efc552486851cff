create function sys.sp_pkeys(
  table_name text, table_owner text default null, table_qualifier text default null
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname,
  "COLUMN_NAME" sys.sysname, "KEY_SEQ" smallint, "PK_NAME" sys.sysname
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(table_qualifier);
  named constant oid[] := sys.relations_named(table_name, false);
begin
  return query
  select
    (select sys.db_name()),
    relations.schema::sys.sysname,
    relations.name::sys.sysname,
    sys.shown_column(relations.oid, columns.attnum, columns.attname)::sys.sysname,
    members.position::smallint,
    keys.name::sys.sysname
  from sys.every_relation as relations
  join sys.every_constraint as keys on keys.relation = relations.oid and keys.type = 'PK'
  cross join lateral unnest(keys.columns) with ordinality as members (number, position)
  join pg_catalog.pg_attribute as columns on columns.attrelid = relations.oid and columns.attnum = members.number
  where relations.oid = any (named) and sys.matches(relations.schema, nullif(table_owner, ''))
  order by 1, 2, 3, 5;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_pkeys(text, text, text) is 'SQL Server and ASE: sp_pkeys, the primary key of a table.';

create function sys.sp_fkeys(
  pktable_name text default null, pktable_owner text default null, pktable_qualifier text default null,
  fktable_name text default null, fktable_owner text default null, fktable_qualifier text default null
) returns table (
  "PKTABLE_QUALIFIER" sys.sysname, "PKTABLE_OWNER" sys.sysname, "PKTABLE_NAME" sys.sysname,
  "PKCOLUMN_NAME" sys.sysname, "FKTABLE_QUALIFIER" sys.sysname, "FKTABLE_OWNER" sys.sysname,
  "FKTABLE_NAME" sys.sysname, "FKCOLUMN_NAME" sys.sysname, "KEY_SEQ" smallint, "UPDATE_RULE" smallint,
  "DELETE_RULE" smallint, "FK_NAME" sys.sysname, "PK_NAME" sys.sysname, "DEFERRABILITY" smallint
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(coalesce(nullif(fktable_qualifier, ''), pktable_qualifier));
begin
  if pktable_name is null and fktable_name is null then
    perform tsql.raise(15252, 16, 1, 'The primary or foreign key table name must be given.');
  end if;
  return query
  select
    coalesce(inner_schemas.database, target_schemas.nspname)::sys.sysname,
    coalesce(inner_schemas.name, 'dbo')::sys.sysname,
    sys.shown_name(targets.oid, 'pg_class', targets.relname)::sys.sysname,
    sys.shown_column(targets.oid, target_columns.attnum, target_columns.attname)::sys.sysname,
    (select sys.db_name()),
    relations.schema::sys.sysname,
    relations.name::sys.sysname,
    sys.shown_column(relations.oid, columns.attnum, columns.attname)::sys.sysname,
    pairs.position::smallint,
    -- ODBC: 0 cascade, 1 no action, 2 set null, 3 set default
    (strpos('cand', replace(keys.update_action::text, 'r', 'a')) - 1)::smallint,
    (strpos('cand', replace(keys.delete_action::text, 'r', 'a')) - 1)::smallint,
    keys.name::sys.sysname,
    sys.shown_index(target_indexes.oid, referenced_keys.oid, referenced_keys.conname, target_indexes.relname,
      targets.relname)::sys.sysname,
    -- not deferrable
    7::smallint
  from sys.every_constraint as keys
  join sys.every_relation as relations on relations.oid = keys.relation
  join pg_catalog.pg_class as targets on targets.oid = keys.referenced
  join pg_catalog.pg_namespace as target_schemas on target_schemas.oid = targets.relnamespace
  left join sys.every_inner_schema as inner_schemas on inner_schemas.oid = targets.relnamespace
  join pg_catalog.pg_class as target_indexes on target_indexes.oid = keys.index
  left join pg_catalog.pg_constraint as referenced_keys
    on referenced_keys.conindid = keys.index and referenced_keys.contype in ('p', 'u')
  cross join lateral unnest(keys.columns, keys.referenced_columns) with ordinality
    as pairs (from_column, to_column, position)
  join pg_catalog.pg_attribute as columns
    on columns.attrelid = relations.oid and columns.attnum = pairs.from_column
  join pg_catalog.pg_attribute as target_columns
    on target_columns.attrelid = targets.oid and target_columns.attnum = pairs.to_column
  where keys.type = 'F'
    and sys.matches(relations.name, nullif(fktable_name, ''), false)
    and sys.matches(targets.relname, nullif(pktable_name, ''), false)
    and sys.matches(relations.schema, nullif(fktable_owner, ''))
    and sys.matches(coalesce(inner_schemas.name, 'dbo'), nullif(pktable_owner, ''))
  order by 5, 6, 7, 12, 9;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_fkeys(text, text, text, text, text, text) is
'SQL Server and ASE: sp_fkeys, the foreign keys of a table or those that refer to it.';
