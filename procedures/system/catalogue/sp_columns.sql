create function sys.remarks(relations oid[]) returns jsonb
language sql stable
as $$
  -- by table and column. Looked up in memory: without statistics of thousands of new columns a join with all their
  -- signals may take seconds
  select coalesce(jsonb_object_agg(format('%s.%s', described.relation, described.number), described.description), '{}')
  from sys.every_description as described
  where described.relation = any (relations)
$$;

create function sys.odbc_type(code integer, odbcver integer) returns integer
language sql immutable
as $$
  -- dates and times have other codes in ODBC 2
  select case when odbcver < 3 and code between 91 and 93 then code - 82 else code end
$$;

create function sys.sp_columns_100(
  table_name text, table_owner text default null, table_qualifier text default null, column_name text default null,
  namescope integer default 0, odbcver integer default 2, fusepattern boolean default true
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname,
  "COLUMN_NAME" sys.sysname, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname, "PRECISION" integer,
  "LENGTH" integer, "SCALE" smallint, "RADIX" smallint, "NULLABLE" smallint, "REMARKS" sys.remarks,
  "COLUMN_DEF" sys.remarks, "SQL_DATA_TYPE" smallint, "SQL_DATETIME_SUB" smallint, "CHAR_OCTET_LENGTH" integer,
  "ORDINAL_POSITION" integer, "IS_NULLABLE" sys.remarks, "SS_IS_SPARSE" smallint, "SS_IS_COLUMN_SET" smallint,
  "SS_IS_COMPUTED" smallint, "SS_IS_IDENTITY" smallint, "SS_UDT_CATALOG_NAME" sys.sysname,
  "SS_UDT_SCHEMA_NAME" sys.sysname, "SS_UDT_ASSEMBLY_TYPE_NAME" sys.sysname,
  "SS_XML_SCHEMACOLLECTION_CATALOG_NAME" sys.sysname, "SS_XML_SCHEMACOLLECTION_SCHEMA_NAME" sys.sysname,
  "SS_XML_SCHEMACOLLECTION_NAME" sys.sysname, "SS_DATA_TYPE" smallint
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(nullif(table_qualifier, '%'));
  relations constant oid[] := sys.relations_named(table_name, fusepattern);
  remarks constant jsonb := sys.remarks(relations);
begin
  return query
  select
    (select sys.db_name()),
    columns.table_schema::sys.sysname,
    columns.table_name::sys.sysname,
    columns.name::sys.sysname,
    sys.odbc_type(types.odbc, odbcver)::smallint,
    -- clients recognize an identity column by it
    (coalesce(columns.user_type, types.name) || case when columns.is_identity then ' identity' else '' end)::sys.sysname,
    types.odbc_precision, types.odbc_length,
    types.odbc_scale::smallint,
    types.radix::smallint,
    columns.is_nullable::integer::smallint,
    sys.remark(remarks ->> format('%s.%s', columns.relation, columns.number)),
    pg_catalog.left(columns.default_definition, 254)::sys.remarks,
    case when types.sub is null then types.odbc else 9 end::smallint,
    types.sub::smallint,
    case when types.characters is not null then types.odbc_length end,
    columns.position,
    case when columns.is_nullable then 'YES' else 'NO' end::sys.remarks,
    0::smallint, 0::smallint,
    columns.is_computed::integer::smallint,
    columns.is_identity::integer::smallint,
    null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname,
    case when columns.is_nullable then types.ss_nullable else types.ss_type end::smallint
  from sys.every_column as columns
  cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
  where columns.relation = any (relations)
    and sys.matches(columns.name, nullif(column_name, ''), fusepattern)
    and sys.matches(columns.table_schema, nullif(table_owner, ''))
  order by 1, 2, 3, 17;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_columns_100(text, text, text, text, integer, integer, boolean) is
$$SQL Server: sp_columns_100, which clients of version 10 (2008) and later call. The columns of the tables whose name is like
@table_name.$$;

create function sys.sp_columns(
  table_name text, table_owner text default null, table_qualifier text default null, column_name text default null,
  odbcver integer default 2
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname,
  "COLUMN_NAME" sys.sysname, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname, "PRECISION" integer,
  "LENGTH" integer, "SCALE" smallint, "RADIX" smallint, "NULLABLE" smallint, "REMARKS" sys.remarks,
  "COLUMN_DEF" sys.remarks, "SQL_DATA_TYPE" smallint, "SQL_DATETIME_SUB" smallint, "CHAR_OCTET_LENGTH" integer,
  "ORDINAL_POSITION" integer, "IS_NULLABLE" sys.remarks, "SS_DATA_TYPE" smallint
)
language sql stable
as $$
  select
    listed."TABLE_QUALIFIER", listed."TABLE_OWNER", listed."TABLE_NAME", listed."COLUMN_NAME", listed."DATA_TYPE",
    listed."TYPE_NAME", listed."PRECISION", listed."LENGTH", listed."SCALE", listed."RADIX", listed."NULLABLE",
    listed."REMARKS", listed."COLUMN_DEF", listed."SQL_DATA_TYPE", listed."SQL_DATETIME_SUB",
    listed."CHAR_OCTET_LENGTH", listed."ORDINAL_POSITION", listed."IS_NULLABLE", listed."SS_DATA_TYPE"
  from sys.sp_columns_100(table_name, table_owner, table_qualifier, column_name, 0, odbcver) as listed
$$;
comment on function sys.sp_columns(text, text, text, text, integer) is 'SQL Server: sp_columns, the same for older clients.';

create function sybsystemprocs.sp_columns(
  table_name text, table_owner text default null, table_qualifier text default null, column_name text default null,
  odbcver integer default 2
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname,
  "COLUMN_NAME" sys.sysname, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname, "PRECISION" integer,
  "LENGTH" integer, "SCALE" smallint, "RADIX" smallint, "NULLABLE" smallint, "REMARKS" sys.remarks,
  "SS_DATA_TYPE" smallint, "COLID" smallint, "COLUMN_DEF" sys.remarks, "SQL_DATA_TYPE" smallint,
  "SQL_DATETIME_SUB" smallint, "CHAR_OCTET_LENGTH" integer, "ORDINAL_POSITION" integer,
  "IS_NULLABLE" sys.remarks
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(nullif(table_qualifier, '%'));
  relations constant oid[] := sys.relations_named(table_name);
  remarks constant jsonb := sys.remarks(relations);
begin
  return query
  select
    (select sys.db_name()),
    columns.table_schema::sys.sysname,
    columns.table_name::sys.sysname,
    columns.name::sys.sysname,
    types.ase_odbc::smallint,
    types.ase_name, types.ase_precision, types.ase_length,
    types.ase_scale::smallint,
    types.ase_radix::smallint,
    columns.is_nullable::integer::smallint,
    sys.remark(remarks ->> format('%s.%s', columns.relation, columns.number)),
    types.storage::smallint,
    columns.number::smallint,
    pg_catalog.left(columns.default_definition, 254)::sys.remarks,
    case when types.ase_odbc between 91 and 93 then 9 else types.ase_odbc end::smallint,
    case when types.ase_odbc between 91 and 93 then types.ase_odbc - 90 end::smallint,
    case when types.characters is not null then types.ase_length end,
    columns.position,
    case when columns.is_nullable then 'YES' else 'NO' end::sys.remarks
  from sys.every_column as columns
  cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
  where columns.relation = any (relations)
    and sys.matches(columns.name, nullif(column_name, ''))
    and sys.matches(columns.table_schema, nullif(table_owner, ''))
  order by 1, 2, 3, 19;
  perform sys.leave(before);
end
$$;
comment on function sybsystemprocs.sp_columns(text, text, text, text, integer) is
$$ASE: sp_columns (Reference Manual: Procedures, catalog stored procedures). Its columns stand in another order from the
13th on, which jTDS relies on.$$;
