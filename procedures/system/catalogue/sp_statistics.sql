create function sys.sp_statistics(
  table_name text, table_owner text default null, table_qualifier text default null, index_name text default '%',
  is_unique text default 'N', accuracy text default 'Q'
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname, "NON_UNIQUE" smallint,
  "INDEX_QUALIFIER" sys.sysname, "INDEX_NAME" sys.sysname, "TYPE" smallint, "SEQ_IN_INDEX" smallint,
  "COLUMN_NAME" sys.sysname, "COLLATION" sys.sysname, "CARDINALITY" bigint, "PAGES" integer,
  "FILTER_CONDITION" sys.remarks
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
    (not indexes.is_unique)::integer::smallint,
    case when indexes.oid is not null then relations.name end::sys.sysname,
    indexes.name::sys.sysname,
    -- ODBC: 0 statistics of the table, 1 a clustered index, 3 one that is neither clustered nor hashed
    case indexes.number when 0 then 0 when 1 then 1 else 3 end::smallint,
    columns.position::smallint,
    columns.name::sys.sysname,
    case when columns.is_descending then 'D' when columns.is_descending is not null then 'A' end::sys.sysname,
    nullif(classes.reltuples, -1)::bigint,
    (pg_catalog.pg_relation_size(classes.oid) / 8192)::integer,
    pg_catalog.left(indexes.filter, 254)::sys.remarks
  from sys.every_relation as relations
  left join lateral (
    select listed.oid, listed.name, listed.number, listed.is_unique, listed.filter
    from sys.every_index as listed
    where listed.relation = relations.oid
      and sys.matches(listed.name, index_name)
      and (listed.is_unique or upper(is_unique) <> 'Y')
    union all
    select null, null, 0, null, null
  ) as indexes on true
  -- for each index: joined, all columns of the database would be read
  left join lateral (
    select listed.position, listed.name, listed.is_descending
    from sys.every_index_column as listed
    where listed.relation = relations.oid and listed.number = indexes.number and listed.is_key
    offset 0
  ) as columns on true
  join pg_catalog.pg_class as classes on classes.oid = coalesce(indexes.oid, relations.oid)
  where relations.type = 'U' and relations.oid = any (named) and sys.matches(relations.schema, nullif(table_owner, ''))
  order by 4 nulls first, 7, 6, 8;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_statistics(text, text, text, text, text, text) is
$$SQL Server and ASE: sp_statistics. The indexes of a table and its columns, with rows and pages (8,192 bytes) by
PostgreSQL's statistics.$$;

create function sys.sp_special_columns(
  table_name text, table_owner text default null, table_qualifier text default null, col_type text default 'R',
  scope text default 'T', nullable text default 'U', odbcver integer default 2
) returns table (
  "SCOPE" smallint, "COLUMN_NAME" sys.sysname, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname,
  "PRECISION" integer, "LENGTH" integer, "SCALE" smallint, "PSEUDO_COLUMN" smallint
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(table_qualifier);
  named constant oid[] := sys.relations_named(table_name, false);
begin
  -- no column changes by itself at each update of its row
  if upper(col_type) = 'R' then
    return query
    select
      -- valid for the session; not a pseudo column
      2::smallint,
      columns.name::sys.sysname,
      sys.odbc_type(types.odbc, odbcver)::smallint,
      types.name, types.odbc_precision, types.odbc_length,
      types.odbc_scale::smallint,
      1::smallint
    from sys.every_relation as relations
    join sys.every_constraint as keys on keys.relation = relations.oid and keys.type = 'PK'
    cross join lateral unnest(keys.columns) with ordinality as members (number, position)
    join sys.every_column as columns on columns.relation = relations.oid and columns.number = members.number
    cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
    where relations.oid = any (named) and columns.relation = any (named) and sys.matches(relations.schema, nullif(table_owner, ''))
    order by members.position;
  end if;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_special_columns(text, text, text, text, text, text, integer) is
'SQL Server and ASE: sp_special_columns. The columns that identify a row: the primary key.';

-- clients of version 10 (2008) and later call them by these names
do $$
declare
  definition text;
begin
  foreach definition in array array[
    pg_get_functiondef('sys.sp_statistics'::regproc), pg_get_functiondef('sys.sp_special_columns'::regproc)
  ]
  loop
    execute regexp_replace(definition, '^CREATE OR REPLACE FUNCTION sys.\w+', '\&_100');
  end loop;
end
$$;
