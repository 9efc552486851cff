create function sys.sp_tables(
  table_name text default null, table_owner text default null, table_qualifier text default null,
  table_type text default null, fusepattern boolean default true
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname, "TABLE_TYPE" sys.sysname,
  "REMARKS" sys.remarks
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before text;
  named oid[];
begin
  -- ODBC's SQLTables: a single % requests the list of databases, owners or types
  if table_qualifier = '%' and table_name = '' and table_owner = '' then
    return query
    select databases.name::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.remarks
    from sys.every_database as databases order by 1;
    return;
  elsif table_owner = '%' and table_name = '' and coalesce(table_qualifier, '') = '' then
    return query
    select null::sys.sysname, schemas.name::sys.sysname, null::sys.sysname, null::sys.sysname, null::sys.remarks
    from sys.every_schema as schemas order by 2;
    return;
  elsif table_type in ('%', '''%''') and table_name = '' and table_owner = '' then
    return query
    select null::sys.sysname, null::sys.sysname, null::sys.sysname, listed.type::sys.sysname, null::sys.remarks
    from (values ('SYSTEM TABLE'), ('TABLE'), ('VIEW')) as listed (type);
    return;
  end if;
  before := sys.enter(nullif(table_qualifier, '%'));
  named := sys.relations_named(nullif(table_name, ''), fusepattern);
  return query
  select
    (select sys.db_name()),
    relations.schema::sys.sysname,
    relations.name::sys.sysname,
    case relations.type when 'V' then 'VIEW' else 'TABLE' end::sys.sysname,
    sys.remark(descriptions.description)
  from sys.every_relation as relations
  left join sys.every_table_description as descriptions on descriptions.relation = relations.oid
  where relations.oid = any (named)
    and sys.matches(relations.schema, nullif(table_owner, ''), fusepattern)
    and (
      coalesce(table_type, '%') in ('%', '''%''', '')
      or case relations.type when 'V' then 'VIEW' else 'TABLE' end = any (
        select upper(trim(both ' ''"' from wanted)) from unnest(string_to_array(table_type, ',')) as wanted
      )
    )
  order by 4, 1, 2, 3;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_tables(text, text, text, text, boolean) is
$$SQL Server and ASE: sp_tables. The tables and views of the current database, or of @table_qualifier, whose name is
like @table_name; @table_type is a list as "'TABLE', 'VIEW'".$$;
