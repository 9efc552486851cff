-- Rights of PostgreSQL by the names of SQL Server's permissions.
create view sys.every_permission as
select *
from (values
  ('SERVER', 'CONNECT SQL', 'usage'), ('SERVER', 'VIEW ANY DATABASE', 'usage'), ('SERVER', 'CONTROL SERVER', null),
  ('SERVER', 'VIEW SERVER STATE', null), ('SERVER', 'ALTER SERVER STATE', null), ('SERVER', 'ALTER SETTINGS', null),
  ('SERVER', 'ALTER TRACE', null), ('SERVER', 'ALTER ANY LOGIN', null), ('SERVER', 'ALTER ANY DATABASE', null),
  ('SERVER', 'CREATE ANY DATABASE', null), ('SERVER', 'VIEW ANY DEFINITION', null), ('SERVER', 'SHUTDOWN', null),
  ('DATABASE', 'CONNECT', 'usage'), ('DATABASE', 'CREATE TABLE', 'create'), ('DATABASE', 'CREATE VIEW', 'create'),
  ('DATABASE', 'CREATE PROCEDURE', 'create'), ('DATABASE', 'CREATE FUNCTION', 'create'), ('DATABASE', 'CREATE TYPE', 'create'),
  ('DATABASE', 'CREATE DEFAULT', 'create'), ('DATABASE', 'CREATE RULE', 'create'), ('DATABASE', 'CREATE SCHEMA', 'create'),
  ('DATABASE', 'SELECT', null), ('DATABASE', 'INSERT', null), ('DATABASE', 'UPDATE', null), ('DATABASE', 'DELETE', null),
  ('DATABASE', 'REFERENCES', null), ('DATABASE', 'EXECUTE', null), ('DATABASE', 'VIEW DEFINITION', null),
  ('DATABASE', 'VIEW DATABASE STATE', null), ('DATABASE', 'BACKUP DATABASE', null), ('DATABASE', 'ALTER', null),
  ('DATABASE', 'CONTROL', null),
  ('OBJECT', 'SELECT', 'select'), ('OBJECT', 'INSERT', 'insert'), ('OBJECT', 'UPDATE', 'update'), ('OBJECT', 'DELETE', 'delete'),
  ('OBJECT', 'REFERENCES', 'references'), ('OBJECT', 'EXECUTE', 'execute'), ('OBJECT', 'VIEW DEFINITION', 'usage'),
  ('OBJECT', 'ALTER', null), ('OBJECT', 'TAKE OWNERSHIP', null), ('OBJECT', 'CONTROL', null)
) as listed (class, name, needs);
comment on view sys.every_permission is
$$Permissions and the right of PostgreSQL that has the same meaning: usage is that of everyone who sees the thing; null: that of
its owner, of the server a superuser's.$$;

create function sys.has_perms_by_name(
  securable text, securable_class text, permission text, sub_securable text default null, sub_class text default null
) returns integer
language plpgsql stable
as $$
declare
  kind constant text := upper(rtrim(coalesce(securable_class, case when securable is null then 'SERVER' else 'OBJECT' end)));
  id constant oid := case when kind = 'OBJECT' then sys.object_id(securable)::oid end;
  required text;
begin
  if upper(rtrim(permission)) = 'ANY' then
    return (
      select max(sys.has_perms_by_name(securable, securable_class, listed.name, sub_securable, sub_class))
      from sys.every_permission as listed where listed.class = kind
    );
  end if;
  select listed.needs into required from sys.every_permission as listed
  where listed.class = kind and listed.name = upper(rtrim(permission));
  if not found then
    return null;
  elsif kind = 'SERVER' then
    return (required is not null or (select rolsuper from pg_catalog.pg_roles where rolname = current_user))::integer;
  elsif kind = 'DATABASE' then
    return (
      select case when required is null then pg_catalog.pg_has_role(nspowner, 'usage')
        else pg_catalog.has_schema_privilege(oid, required) end::integer
      from pg_catalog.pg_namespace where nspname = coalesce(lower(sys.parsename(securable, 1)), sys.current_database())
    );
  elsif required is null then
    return (
      select pg_catalog.pg_has_role(owned.owner, 'usage')::integer
      from (
        select relowner as owner from pg_catalog.pg_class where oid = id
        union all
        select proowner from pg_catalog.pg_proc where oid = id
      ) as owned limit 1
    );
  elsif required = 'usage' then
    return case when id is not null then 1 end;
  elsif exists (select from pg_catalog.pg_proc where oid = id) then
    return (required = 'execute' and pg_catalog.has_function_privilege(id, 'execute'))::integer;
  elsif required = 'execute' then
    return case when id is not null then 0 end;
  elsif sub_securable is not null then
    return (
      select pg_catalog.has_column_privilege(id, columns.number, required)::integer
      from sys.every_column as columns
      where columns.relation = id and sys.is_same_name(columns.name, sys.parsename(sub_securable, 1)) and required <> 'delete'
    );
  end if;
  return pg_catalog.has_table_privilege(id, required)::integer;
end
$$;
comment on function sys.has_perms_by_name(text, text, text, text, text) is
$$SQL Server: HAS_PERMS_BY_NAME, of the server, a database, an object or a column; null for a thing, class or permission that
is not known. An object's owner has all permissions.$$;

create function sys.fn_my_permissions(securable text, securable_class text)
returns table (entity_name sys.sysname, subentity_name sys.sysname, permission_name sys.sysname)
language sql stable
as $$
  select
    case upper(rtrim($2)) when 'OBJECT' then $1 else lower(rtrim($2)) end::sys.sysname, ''::sys.sysname, listed.name::sys.sysname
  from sys.every_permission as listed
  where listed.class = upper(rtrim($2)) and sys.has_perms_by_name($1, $2, listed.name) = 1
  union all
  select $1, columns.name, listed.name
  from sys.every_permission as listed
  join sys.every_column as columns on columns.relation = sys.object_id($1)::oid
  where upper(rtrim($2)) = 'OBJECT' and listed.class = 'OBJECT' and listed.needs in ('select', 'update', 'references')
    and pg_catalog.has_column_privilege(columns.relation, columns.number, listed.needs)
$$;
comment on function sys.fn_my_permissions(text, text) is
'SQL Server: sys.fn_my_permissions, those of sys.has_perms_by_name that the caller has; of an object also on its columns';
