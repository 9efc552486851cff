create function sys.procedures_named(name text, owner text, as_pattern boolean) returns setof sys.every_listed_procedure
language sql stable
as $$
  select procedures.*
  from sys.every_listed_procedure as procedures
  where sys.matches(procedures.name, regexp_replace(nullif($1, ''), ';\d+$', ''), as_pattern)
    and procedures.number = coalesce(substring($1 from ';(\d+)$')::smallint, procedures.number)
    and sys.matches(procedures.shown_schema, nullif(owner, ''))
$$;
comment on function sys.procedures_named(text, text, boolean) is
'The listed procedures whose name, or name;number, matches a pattern, or equals it.';

create function sys.sp_stored_procedures(
  sp_name text default null, sp_owner text default null, sp_qualifier text default null,
  fusepattern boolean default true
) returns table (
  "PROCEDURE_QUALIFIER" sys.sysname, "PROCEDURE_OWNER" sys.sysname, "PROCEDURE_NAME" sys.line,
  "NUM_INPUT_PARAMS" integer, "NUM_OUTPUT_PARAMS" integer, "NUM_RESULT_SETS" integer, "REMARKS" sys.remarks,
  "PROCEDURE_TYPE" smallint
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(nullif(sp_qualifier, '%'));
begin
  return query
  select
    (select sys.db_name()),
    procedures.shown_schema::sys.sysname,
    (procedures.name || ';' || procedures.number)::sys.line,
    -1, -1, -1,
    -- the comment of a compiled procedure is its source
    case when procedures.is_compiled then null::sys.remarks else sys.remark(pg_catalog.obj_description(procedures.oid, 'pg_proc')) end,
    2::smallint
  from sys.procedures_named(sp_name, sp_owner, fusepattern) as procedures
  order by 1, 2, 3;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_stored_procedures(text, text, text, boolean) is
$$SQL Server and ASE: sp_stored_procedures. The procedures of the database, and ringlog's own, that the caller may execute.
The numbers of parameters are not reported (-1), as in SQL Server.$$;

create function sys.sp_sproc_columns(
  procedure_name text default null, procedure_owner text default null, procedure_qualifier text default null,
  column_name text default null, odbcver integer default 2, fusepattern boolean default true
) returns table (
  "PROCEDURE_QUALIFIER" sys.sysname, "PROCEDURE_OWNER" sys.sysname, "PROCEDURE_NAME" sys.line,
  "COLUMN_NAME" sys.sysname, "COLUMN_TYPE" smallint, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname,
  "PRECISION" integer, "LENGTH" integer, "SCALE" smallint, "RADIX" smallint, "NULLABLE" smallint,
  "REMARKS" sys.remarks, "COLUMN_DEF" sys.remarks, "SQL_DATA_TYPE" smallint, "SQL_DATETIME_SUB" smallint,
  "CHAR_OCTET_LENGTH" integer, "ORDINAL_POSITION" integer, "IS_NULLABLE" sys.remarks, "SS_DATA_TYPE" smallint
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(nullif(procedure_qualifier, '%'));
begin
  return query
  select
    (select sys.db_name()),
    procedures.shown_schema::sys.sysname,
    (procedures.name || ';' || procedures.number)::sys.line,
    parameters.name::sys.sysname,
    parameters.kind::smallint,
    sys.odbc_type(types.odbc, odbcver)::smallint,
    types.name, types.odbc_precision, types.odbc_length,
    types.odbc_scale::smallint,
    types.radix::smallint,
    (parameters.position > 0)::integer::smallint,
    null::sys.remarks, null::sys.remarks,
    case when types.sub is null then types.odbc else 9 end::smallint,
    types.sub::smallint,
    case when types.characters is not null then types.odbc_length end,
    parameters.position,
    case when parameters.position > 0 then 'YES' else 'NO' end::sys.remarks,
    types.ss_nullable::smallint
  from sys.procedures_named(procedure_name, procedure_owner, fusepattern) as procedures
  cross join lateral (
    -- ODBC: 1 input, 2 input and output, 5 return value
    select '@RETURN_VALUE' as name, 5 as kind, 'integer'::regtype::oid as type, -1 as typmod, null as declared,
      0 as position
    union all
    select '@' || listed.name, case when listed.is_output then 2 else 1 end, listed.type, listed.typmod, listed.declared,
      listed.position
    from sys.every_stored_parameter as listed
    where listed.procedure = procedures.oid
  ) as parameters
  cross join lateral sys.described_type(parameters.type, parameters.typmod, parameters.declared) as types
  where sys.matches(parameters.name, nullif(column_name, ''), fusepattern)
  order by 1, 2, 3, 18;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_sproc_columns(text, text, text, text, integer, boolean) is
$$SQL Server and ASE: sp_sproc_columns. The parameters of the procedures of the database, and of ringlog's own, as callers
see them, a row argument unfolded into its fields.$$;

create function sys.sp_sproc_columns_100(
  procedure_name text default null, procedure_owner text default null, procedure_qualifier text default null,
  column_name text default null, odbcver integer default 2, fusepattern boolean default true
) returns table (
  "PROCEDURE_QUALIFIER" sys.sysname, "PROCEDURE_OWNER" sys.sysname, "PROCEDURE_NAME" sys.line,
  "COLUMN_NAME" sys.sysname, "COLUMN_TYPE" smallint, "DATA_TYPE" smallint, "TYPE_NAME" sys.sysname,
  "PRECISION" integer, "LENGTH" integer, "SCALE" smallint, "RADIX" smallint, "NULLABLE" smallint,
  "REMARKS" sys.remarks, "COLUMN_DEF" sys.remarks, "SQL_DATA_TYPE" smallint, "SQL_DATETIME_SUB" smallint,
  "CHAR_OCTET_LENGTH" integer, "ORDINAL_POSITION" integer, "IS_NULLABLE" sys.remarks,
  "SS_TYPE_CATALOG_NAME" sys.sysname, "SS_TYPE_SCHEMA_NAME" sys.sysname, "SS_UDT_CATALOG_NAME" sys.sysname,
  "SS_UDT_SCHEMA_NAME" sys.sysname, "SS_UDT_ASSEMBLY_TYPE_NAME" sys.sysname,
  "SS_XML_SCHEMACOLLECTION_CATALOG_NAME" sys.sysname, "SS_XML_SCHEMACOLLECTION_SCHEMA_NAME" sys.sysname,
  "SS_XML_SCHEMACOLLECTION_NAME" sys.sysname, "SS_DATA_TYPE" smallint
)
language sql stable
as $$
  select
    listed."PROCEDURE_QUALIFIER", listed."PROCEDURE_OWNER", listed."PROCEDURE_NAME", listed."COLUMN_NAME",
    listed."COLUMN_TYPE", listed."DATA_TYPE", listed."TYPE_NAME", listed."PRECISION", listed."LENGTH",
    listed."SCALE", listed."RADIX", listed."NULLABLE", listed."REMARKS", listed."COLUMN_DEF",
    listed."SQL_DATA_TYPE", listed."SQL_DATETIME_SUB", listed."CHAR_OCTET_LENGTH", listed."ORDINAL_POSITION",
    listed."IS_NULLABLE",
    null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname,
    null::sys.sysname, null::sys.sysname,
    listed."SS_DATA_TYPE"
  from sys.sp_sproc_columns(
    procedure_name, procedure_owner, procedure_qualifier, column_name, odbcver, fusepattern
  ) as listed
$$;
comment on function sys.sp_sproc_columns_100(text, text, text, text, integer, boolean) is
'SQL Server: sp_sproc_columns_100, which clients of version 10 (2008) and later call.';
