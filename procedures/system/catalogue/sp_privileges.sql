create view sys.every_privilege as
select
  relations.oid as relation,
  relations.name as table_name,
  relations.schema as table_schema,
  granted.number,
  granted.name as column_name,
  case granted.grantor when relations.owner then 'dbo' else granted.grantor::regrole::text end as grantor,
  case granted.grantee when 0 then 'public' when relations.owner then 'dbo' else granted.grantee::regrole::text end
    as grantee,
  granted.privilege, granted.is_grantable
from (
  select listed.oid, listed.name, listed.schema, classes.relowner as owner, classes.relacl as acl
  from sys.every_relation as listed
  join pg_catalog.pg_class as classes on classes.oid = listed.oid
) as relations
cross join lateral (
  select
    columns.number, columns.name, rights.grantor, rights.grantee,
    rights.privilege_type as privilege,
    rights.is_grantable
  from sys.every_column as columns
  join pg_catalog.pg_attribute as attributes
    on attributes.attrelid = columns.relation and attributes.attnum = columns.number
  cross join lateral (
    select * from pg_catalog.aclexplode(coalesce(relations.acl, pg_catalog.acldefault('r', relations.owner)))
    union
    select * from pg_catalog.aclexplode(attributes.attacl)
  ) as rights
  where columns.relation = relations.oid
    and rights.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
  union all
  select 0, null, rights.grantor, rights.grantee, rights.privilege_type, rights.is_grantable
  from pg_catalog.aclexplode(coalesce(relations.acl, pg_catalog.acldefault('r', relations.owner))) as rights
  where rights.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'REFERENCES')
) as granted;

create function sys.sp_table_privileges(
  table_name text, table_owner text default null, table_qualifier text default null, fusepattern boolean default true
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname, "GRANTOR" sys.sysname,
  "GRANTEE" sys.sysname, "PRIVILEGE" sys.sysname, "IS_GRANTABLE" sys.sysname
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(nullif(table_qualifier, '%'));
begin
  return query
  select
    (select sys.db_name()),
    privileges.table_schema::sys.sysname,
    privileges.table_name::sys.sysname,
    privileges.grantor::sys.sysname,
    privileges.grantee::sys.sysname,
    privileges.privilege::sys.sysname,
    case when privileges.is_grantable then 'YES' else 'NO' end::sys.sysname
  from sys.every_privilege as privileges
  where privileges.number = 0
    and sys.matches(privileges.table_name, nullif(table_name, ''), fusepattern)
    and sys.matches(privileges.table_schema, nullif(table_owner, ''))
  order by 1, 2, 3, 6, 5;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_table_privileges(text, text, text, boolean) is
'SQL Server and ASE: sp_table_privileges, who may do what with a table.';

create function sys.sp_column_privileges(
  table_name text, table_owner text default null, table_qualifier text default null, column_name text default null
) returns table (
  "TABLE_QUALIFIER" sys.sysname, "TABLE_OWNER" sys.sysname, "TABLE_NAME" sys.sysname,
  "COLUMN_NAME" sys.sysname, "GRANTOR" sys.sysname, "GRANTEE" sys.sysname, "PRIVILEGE" sys.sysname,
  "IS_GRANTABLE" sys.sysname
)
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  before constant text := sys.enter(table_qualifier);
begin
  return query
  select
    (select sys.db_name()),
    privileges.table_schema::sys.sysname,
    privileges.table_name::sys.sysname,
    privileges.column_name::sys.sysname,
    privileges.grantor::sys.sysname,
    privileges.grantee::sys.sysname,
    privileges.privilege::sys.sysname,
    case when privileges.is_grantable then 'YES' else 'NO' end::sys.sysname
  from sys.every_privilege as privileges
  where privileges.number > 0
    and sys.matches(privileges.table_name, table_name, false)
    and sys.matches(privileges.column_name, nullif(column_name, ''))
    and sys.matches(privileges.table_schema, nullif(table_owner, ''))
  order by 1, 2, 3, 4, 7, 6;
  perform sys.leave(before);
end
$$;
comment on function sys.sp_column_privileges(text, text, text, text) is
'SQL Server and ASE: sp_column_privileges, who may do what with a column.';

-- Rights on tables, on columns, and on procedures; those of owners are not listed.
create view sys.database_permissions as
select
  1::smallint as class, 'OBJECT_OR_COLUMN'::sys.sysname as class_desc,
  granted.object::integer as major_id,
  granted.number::integer as minor_id,
  granted.grantee::integer as grantee_principal_id,
  case granted.grantor when granted.owner then 1 else granted.grantor::integer end as grantor_principal_id,
  names.type::character(4) as type,
  granted.privilege::sys.sysname as permission_name,
  case when granted.is_grantable then 'W' else 'G' end::character(1) as state,
  case when granted.is_grantable then 'GRANT_WITH_GRANT_OPTION' else 'GRANT' end::sys.sysname as state_desc
from (
  select
    relations.oid as object, 0 as number, classes.relowner as owner,
    rights.grantee, rights.grantor, rights.privilege_type as privilege, rights.is_grantable
  from sys.every_relation as relations
  join pg_catalog.pg_class as classes on classes.oid = relations.oid
  cross join lateral pg_catalog.aclexplode(classes.relacl) as rights
  union all
  select
    columns.relation, columns.number, classes.relowner,
    rights.grantee, rights.grantor, rights.privilege_type, rights.is_grantable
  from sys.every_column as columns
  join pg_catalog.pg_class as classes on classes.oid = columns.relation
  join pg_catalog.pg_attribute as attributes
    on attributes.attrelid = columns.relation and attributes.attnum = columns.number
  cross join lateral pg_catalog.aclexplode(attributes.attacl) as rights
  union all
  select
    procedures.oid, 0, routines.proowner,
    rights.grantee, rights.grantor, rights.privilege_type, rights.is_grantable
  from sys.every_procedure as procedures
  join pg_catalog.pg_proc as routines on routines.oid = procedures.oid
  cross join lateral pg_catalog.aclexplode(routines.proacl) as rights
  where procedures.namespace = any (array(select schemas.oid from sys.every_schema as schemas))
) as granted
join (values
  ('SELECT', 'SL'), ('INSERT', 'IN'), ('UPDATE', 'UP'), ('DELETE', 'DL'), ('REFERENCES', 'RF'), ('EXECUTE', 'EX')
) as names (privilege, type) on names.privilege = granted.privilege
where granted.grantee <> granted.owner;
comment on view sys.database_permissions is 'SQL Server: Catalog Views, sys.database_permissions';
