-- CREATE DATABASE and CREATE SCHEMA: a database of T-SQL is a schema of PostgreSQL, and so is a schema in a database, whose
-- comment names it (procedures/system/views/schemas.sql).

create or replace function tsql.is_site_schema(schema text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_namespace
    where nspname = schema and pg_has_role(nspowner, 'usage')
      and nspowner <> (select nspowner from pg_namespace where nspname = 'tsql')
  )
$$;
comment on function tsql.is_site_schema(text) is
'Whether a schema belongs to the caller or a role of his, and not to ringlog.';

create or replace function tsql.object_in(schema text) returns text
language sql stable
as $$
  select objects.found
  from (
    select relname as found, relnamespace as namespace from pg_class
    union all
    select proname, pronamespace from pg_proc
  ) as objects
  where objects.namespace = to_regnamespace(quote_ident(schema))
  limit 1
$$;
comment on function tsql.object_in(text) is 'A table, view or procedure of a schema; null if it is empty.';

create or replace procedure tsql.declare_schema(schema text, collation_ text, database text default null)
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
  execute format('comment on schema %I is %L', schema, sys.with_property(
    concat_ws(' ', 'T-SQL', 'collation ' || collation_, 'schema of ' || database) || properties,
    'MS_Description', case when description not like 'T-SQL %' then description end, false));
  notify ringlog_catalogue;
end
$$;
comment on procedure tsql.declare_schema(text, text, text) is
$$Writes into the comment of a schema of PostgreSQL its default collation (null: the binary one) and the database that has it
in it (null: it is a database), and tells the gateway. Error: no columns without case here (102).$$;

create or replace procedure tsql.set_collation(database text, collation_ text)
language plpgsql
as $$
declare
  altered constant text := coalesce(database, current_schema());
begin
  if not tsql.is_site_schema(altered) then
    perform tsql.raise(5011, 14, 1, format('User does not have permission to alter database ''%s'', the database does not exist, or '
      'the database is not in a state that allows access checks.', altered));
  elsif collation_ <> sys.collation_of_database(altered) and (tsql.object_in(altered) is not null
    or exists (select from sys.every_inner_schema as schemas where schemas.database = altered)) then
    perform tsql.raise(5072, 16, 1, format('ALTER DATABASE failed. The default collation of database ''%s'' cannot be set to %s: it is '
      'not empty.', altered, collation_));
  end if;
  call tsql.declare_schema(altered, collation_);
end
$$;
comment on procedure tsql.set_collation(text, text) is
$$ALTER DATABASE … COLLATE: the default collation of an empty database of the caller's; null for the current one. Errors: none of
the name or not the caller's (5011), it has tables or procedures (5072).$$;

create or replace procedure tsql.create_schema(kind text, name text, collation_ text default null)
language plpgsql
as $$
declare
  database constant text := case kind when 'schema' then sys.current_database() end;
begin
  if to_regnamespace(quote_ident(lower(name))) is not null
    or lower(name) in ('dbo', 'guest', 'master', 'model', 'msdb', 'sybsystemdb', 'tempdb') then
    if kind = 'database' then
      perform tsql.raise(1801, 16, 3, format('Database ''%s'' already exists. Choose a different database name.', name));
    end if;
    perform tsql.raise(2714, 16, 6, format('There is already a schema named ''%s'', in this or another database.', name));
  elsif not has_database_privilege(current_database(), 'create')
    or database is not null and not has_schema_privilege(database, 'create') then
    perform tsql.raise(262, 14, 1, format('CREATE %s permission denied in database ''%s''.', upper(kind), coalesce(database, 'master')));
  end if;
  execute format('create schema %I', lower(name));
  collation_ := nullif(coalesce(collation_, sys.collation_of_database(database)), sys.collation_of_database(lower(name)));
  if collation_ is not null or database is not null then
    call tsql.declare_schema(lower(name), collation_, database);
  end if;
  if database is not null then
    -- T-SQL has no right to use a schema: those on its objects decide
    execute format('grant usage on schema %I to public', lower(name));
  end if;
end
$$;
comment on procedure tsql.create_schema(text, text, text) is
$$Makes a database, or a schema in the current one (kind), which belongs to the caller. collation_: the default collation; null
for that of the current database if it is a schema, otherwise the binary one. Errors: the name is taken (1801, 2714), no right
to make one (262).$$;

create or replace procedure tsql.drop_schema(kind text, name text, if_exists boolean)
language plpgsql
as $$
declare
  stored constant text := lower(name);
  inside text;
begin
  if to_regnamespace(quote_ident(stored)) is null and if_exists then
    return;
  elsif not tsql.is_site_schema(stored)
    or tsql.database_of(stored) is distinct from (case kind when 'schema' then sys.current_database() end) then
    if kind = 'schema' and stored in ('dbo', 'sys', 'information_schema', 'guest') then
      perform tsql.raise(15150, 16, 1, format('Cannot drop the schema ''%s''.', name));
    elsif kind = 'database' and stored in ('master', 'tempdb', 'model', 'msdb') then
      perform tsql.raise(3708, 16, 1, format('Cannot drop the database ''%s'' because it is a system database.', name));
    end if;
    perform tsql.raise(case kind when 'schema' then 15151 else 3701 end, case kind when 'schema' then 16 else 11 end, 1, format(
      'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
  elsif kind = 'database' and stored = sys.current_database() then
    perform tsql.raise(3702, 16, 4, format('Cannot drop database "%s" because it is currently in use.', name));
  end if;
  if kind = 'schema' then
    inside := tsql.object_in(stored);
    if inside is not null then
      perform tsql.raise(3729, 16, 1, format('Cannot drop schema ''%s'' because it is being referenced by object ''%s''.', name, inside));
    end if;
  end if;
  execute format('drop schema %s cascade', (
    select string_agg(quote_ident(dropped.name), ', ')
    from (
      select stored as name
      union all
      select schemas.name from sys.every_inner_schema as schemas where schemas.database = stored
    ) as dropped
  ));
  notify ringlog_catalogue;
end
$$;
comment on procedure tsql.drop_schema(text, text, boolean) is
$$Drops a database with all that is in it, or an empty schema of the current one (kind), of the caller's. Errors: none of the name
or not the caller's (3701, 15151), one of the system (3708, 15150), the session's current one (3702), a schema that is not empty (3729).$$;
