-- CREATE DATABASE and CREATE SCHEMA: a database of T-SQL is a schema of PostgreSQL, and so is a schema of a database.

create or replace function tsql.is_site_schema(schema text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_namespace
    where nspname = schema and pg_has_role(nspowner, 'usage')
      and nspowner <> (select nspowner from pg_namespace where nspname = 'tsql')
  )
$$;
comment on function tsql.is_site_schema(text) is
'Whether a schema belongs to the caller or a role of his, and not to ringlog.';

create or replace procedure tsql.create_schema(kind text, name text)
language plpgsql
as $$
begin
  if to_regnamespace(quote_ident(lower(name))) is not null
    or lower(name) in ('dbo', 'guest', 'master', 'model', 'msdb', 'sybsystemdb', 'tempdb') then
    if kind = 'database' then
      perform tsql.raise(1801, 16, 3, format('Database ''%s'' already exists. Choose a different database name.', name));
    end if;
    perform tsql.raise(2714, 16, 6, format('There is already an object named ''%s'' in the database.', name));
  elsif not has_database_privilege(current_database(), 'create') then
    perform tsql.raise(262, 14, 1, format('CREATE %s permission denied in database ''master''.', upper(kind)));
  end if;
  execute format('create schema %I', lower(name));
end
$$;
comment on procedure tsql.create_schema(text, text) is
$$Makes a database or a schema (kind), which belongs to the caller. Errors: the name is taken (1801, 2714), no right to make one
(262).$$;

create or replace procedure tsql.drop_schema(kind text, name text, if_exists boolean)
language plpgsql
as $$
declare
  inside text;
begin
  if to_regnamespace(quote_ident(lower(name))) is null and if_exists then
    return;
  elsif not tsql.is_site_schema(lower(name)) then
    perform tsql.raise(3701, 11, 1, format(
      'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
  elsif kind = 'database' and lower(name) = current_schema() then
    perform tsql.raise(3702, 16, 4, format('Cannot drop database "%s" because it is currently in use.', name));
  end if;
  if kind = 'schema' then
    select objects.found into inside
    from (
      select relname as found, relnamespace as place from pg_class
      union all
      select proname, pronamespace from pg_proc
    ) as objects
    where objects.place = to_regnamespace(quote_ident(lower(name)))
    limit 1;
    if inside is not null then
      perform tsql.raise(3729, 16, 1, format('Cannot drop schema ''%s'' because it is being referenced by object ''%s''.', name, inside));
    end if;
  end if;
  execute format('drop schema %I cascade', lower(name));
end
$$;
comment on procedure tsql.drop_schema(text, text, boolean) is
$$Drops a database with all that is in it, or an empty schema (kind), of the caller's. Errors: none of the name or not the caller's
(3701), the session's current one (3702), a schema that is not empty (3729).$$;
