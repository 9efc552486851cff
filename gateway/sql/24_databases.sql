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

create or replace function tsql.object_in(schema text)
returns text
language sql
stable
as $$
  select objects.found
  from (
    select relname as found, relnamespace as place from pg_class
    union all
    select proname, pronamespace from pg_proc
  ) as objects
  where objects.place = to_regnamespace(quote_ident(schema))
  limit 1
$$;
comment on function tsql.object_in(text) is 'A table, view or procedure of a schema; null if it is empty.';

create or replace procedure tsql.write_collation(schema text, collation_ text)
language plpgsql
as $$
declare
  old constant text := obj_description(to_regnamespace(quote_ident(schema)), 'pg_namespace');
  properties constant text := coalesce(substring(old from '\n-- extended properties: \{.*\}$'), '');
  description constant text := nullif(sys.comment_base(old), '');
begin
  if collation_ not ilike '%\_BIN%' and to_regtype('tsql.ci_varchar') is null then
    perform tsql.raise(102, 15, 1, 'A collation without case is not supported here: it needs PostgreSQL 18, and a superuser as the '
      'installer.');
  end if;
  execute format('comment on schema %I is %L', schema, sys.with_property('T-SQL collation ' || collation_ || properties,
    'MS_Description', case when description not like 'T-SQL %' then description end, false));
  notify ringlog_catalogue;
end
$$;
comment on procedure tsql.write_collation(text, text) is
'Writes a database''s default collation into the comment of its schema, and tells the gateway.';

create or replace procedure tsql.set_collation(database text, collation_ text)
language plpgsql
as $$
declare
  name constant text := coalesce(database, current_schema());
begin
  if not tsql.is_site_schema(name) then
    perform tsql.raise(5011, 14, 1, format('User does not have permission to alter database ''%s'', the database does not exist, or '
      'the database is not in a state that allows access checks.', name));
  elsif collation_ <> sys.collation_of_database(name) and tsql.object_in(name) is not null then
    perform tsql.raise(5072, 16, 1, format('ALTER DATABASE failed. The default collation of database ''%s'' cannot be set to %s: it is '
      'not empty.', name, collation_));
  end if;
  call tsql.write_collation(name, collation_);
end
$$;
comment on procedure tsql.set_collation(text, text) is
$$ALTER DATABASE … COLLATE: the default collation of an empty database of the caller's; null for the current one. Errors: none of
the name or not the caller's (5011), it has tables or procedures (5072).$$;

drop procedure if exists tsql.create_schema(text, text);
create or replace procedure tsql.create_schema(kind text, name text, collation_ text default null)
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
  collation_ := coalesce(collation_, case kind when 'schema' then sys.collation_of_database(current_schema()) end);
  if collation_ <> sys.collation_of_database(lower(name)) then
    call tsql.write_collation(lower(name), collation_);
  end if;
end
$$;
comment on procedure tsql.create_schema(text, text, text) is
$$Makes a database or a schema (kind), which belongs to the caller. collation_: the default collation; null for that of the current
database if it is a schema, otherwise the binary one. Errors: the name is taken (1801, 2714), no right to make one
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
    inside := tsql.object_in(lower(name));
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
