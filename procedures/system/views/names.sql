-- SQL Server's metadata functions for names and numbers. They return null for objects that do not exist or that the
-- caller has no right to.

create function sys.parsename(name text, part integer) returns text
language plpgsql immutable strict
as $$
declare
  parts text[] := '{}';
  found text := '';
  quote text;
  letter text;
  at integer := 1;
begin
  while at <= length(name) loop
    letter := substr(name, at, 1);
    if quote is null and letter in ('[', '"') and found = '' then
      quote := case letter when '[' then ']' else '"' end;
    elsif letter = quote and substr(name, at + 1, 1) = quote then
      found := found || letter;
      at := at + 1;
    elsif letter = quote and substr(name, at + 1, 1) in ('', '.') then
      quote := null;
    elsif letter = quote or quote is null and letter in ('[', ']', '"') then
      -- no name
      return null;
    elsif quote is null and letter = '.' then
      parts := array_append(parts, found);
      found := '';
    else
      found := found || letter;
    end if;
    at := at + 1;
  end loop;
  parts := array_append(parts, found);
  if quote is not null or cardinality(parts) > 4 or part not between 1 and 4
    or exists (select from unnest(parts) as one where length(one) > 128) then
    return null;
  end if;
  return nullif(parts[cardinality(parts) + 1 - part], '');
end
$$;
comment on function sys.parsename(text, integer) is
'SQL Server: PARSENAME, a part of a name: 1 the object, 2 the schema, 3 the database, 4 the server';

create function sys.quotename(name text, quote text default '[') returns text
language sql immutable strict
as $$
  select case
    when length(name) > 128 then null
    when quote in ('[', ']') then '[' || replace(name, ']', ']]') || ']'
    when quote = '"' then '"' || replace(name, '"', '""') || '"'
    when quote = '''' then '''' || replace(name, '''', '''''') || ''''
    when quote in ('(', ')') then '(' || replace(name, ')', '))') || ')'
    when quote in ('<', '>') then '<' || replace(name, '>', '>>') || '>'
    when quote in ('{', '}') then '{' || replace(name, '}', '}}') || '}'
  end
$$;

create function sys.schema_of(name text) returns text
language sql stable
as $$
  -- log..t and log.dbo.t name a database; t and dbo.t are in the current one; log.t is log..t, as in PostgreSQL, unless the
  -- database has a schema of that name
  select case
    when coalesce(sys.parsename(name, 2), 'dbo') = 'dbo' then coalesce(sys.parsename(name, 3), sys.current_database())
    when sys.parsename(name, 3) is null then sys.parsename(name, 2)
    else (
      select schemas.name from sys.every_inner_schema as schemas
      where (schemas.database, schemas.name) = (sys.parsename(schema_of.name, 3), sys.parsename(schema_of.name, 2))
    )
  end
$$;
comment on function sys.schema_of(text) is 'The schema of PostgreSQL that has the object of this name; null if there is none.';

create function sys.object_id(name text, type text default null) returns integer
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  object constant text := sys.parsename(name, 1);
  spellings constant name[] := array[object, tsql.stored_name(object)];
  kind constant text := upper(type);
  schema constant oid := pg_catalog.to_regnamespace(pg_catalog.quote_ident(sys.schema_of(name)));
  id oid;
begin
  if object like '##%' and coalesce(kind, 'U') = 'U' then
    return (
      select relations.oid::integer from pg_catalog.pg_class as relations
      where relations.relnamespace = 'tsql_global'::regnamespace and relations.relname = tsql.stored_name(object)
        and sys.is_global(relations.oid)
    );
  end if;
  if object like '#%' then
    return coalesce(
      (
        select relations.oid::integer from pg_catalog.pg_class as relations
        where relations.relnamespace = pg_catalog.pg_my_temp_schema() and relations.relname = any (spellings)
          and coalesce(kind, 'U') = 'U'
      ),
      (
        select procedures.oid::integer from pg_catalog.pg_proc as procedures
        where procedures.pronamespace = pg_catalog.pg_my_temp_schema() and procedures.proname = any (spellings)
          and coalesce(kind, 'P') = 'P'
      )
    );
  end if;
  if coalesce(kind, 'U') in ('U', 'V') then
    select relations.oid into id
    from pg_catalog.pg_class as relations
    where relations.relname = any (spellings) and relations.relnamespace = schema
      and relations.relkind in ('r', 'p', 'v', 'm', 'f')
      and not relations.relispartition
      and (
        kind is null
        or (kind = 'V') = (relations.relkind in ('v', 'm') and sys.stored_in(relations.oid) = relations.oid)
      )
      and sys.may_see(relations.oid)
    order by relations.relname <> object
    limit 1;
  end if;
  if id is null and coalesce(kind, 'P') in ('P', 'FN', 'IF', 'TF', 'PC', 'X') then
    select procedures.oid into id
    from sys.every_procedure as procedures
    -- the first of a group has no number in its name
    where procedures.proname = any (spellings)
      and procedures.type = coalesce(kind, procedures.type)
      -- ringlog's procedures are in every database, other schemas' are not
      and schema is not null
      and procedures.schema in (sys.schema_of(name), 'ringlog')
    order by procedures.schema = 'ringlog', procedures.proname <> object, procedures.oid
    limit 1;
  end if;
  if id is null and coalesce(kind, 'TR') = 'TR' then
    select triggers.tgfoid into id
    from pg_catalog.pg_trigger as triggers
    join pg_catalog.pg_class as relations on relations.oid = triggers.tgrelid
    where triggers.tgname = any (spellings) and relations.relnamespace = schema
      and not triggers.tgisinternal
      and sys.may_see(relations.oid)
    order by triggers.tgname <> object, triggers.tgfoid
    limit 1;
  end if;
  if id is null and coalesce(kind, 'C') in ('C', 'F', 'PK', 'UQ') then
    select constraints.oid into id
    from pg_catalog.pg_constraint as constraints
    where constraints.conname = any (spellings) and constraints.connamespace = schema
      and constraints.contype = any (
        case kind when 'C' then '{c}' when 'F' then '{f}' when 'PK' then '{p}' when 'UQ' then '{u}' else '{c,f,p,u}'
        end::"char"[]
      )
      and sys.may_see(constraints.conrelid)
    order by constraints.conname <> object, constraints.oid
    limit 1;
  end if;
  if id is null and coalesce(kind, 'R') in ('R', 'D') then
    select functions.oid into id
    from pg_catalog.pg_proc as functions
    where functions.proname = any (spellings) and functions.pronamespace = schema
      and functions.prosrc ~ case kind when 'R' then '-- rule of T-SQL$' when 'D' then '-- default of T-SQL$'
        else '-- (rule|default) of T-SQL$' end
    limit 1;
  end if;
  if id is null and coalesce(kind, 'SO') = 'SO' then
    select sequences.oid into id
    from pg_catalog.pg_class as sequences
    where sequences.relname = any (spellings) and sequences.relnamespace = schema and sequences.relkind = 'S'
      and sys.may_see(sequences.oid)
    limit 1;
  end if;
  return id::integer;
end
$$;
comment on function sys.object_id(text, text) is
$$SQL Server: OBJECT_ID, of an object of the current database or of the one named, in the letters given or in small
ones. Of #t it is the id of the session's own temporary table or procedure, of ##t that of the global one.$$;

create function sys.named_elsewhere(id integer, database integer, out name sys.sysname, out schema sys.sysname)
language plpgsql stable
as $$
declare
  before constant text := sys.enter(sys.db_name(database));
begin
  name := sys.object_name(id);
  schema := sys.object_schema_name(id);
  perform sys.leave(before);
end
$$;

-- Those of one expression.
do $do$
declare
  one text[];
begin
  foreach one slice 1 in array array[
    ['object_name(id integer)', 'sys.sysname',
      $$select objects.name::sys.sysname from sys.every_object as objects where objects.oid = id::oid limit 1$$],
    ['object_schema_name(id integer)', 'sys.sysname',
      $$select objects.schema::sys.sysname from sys.every_object as objects where objects.oid = id::oid limit 1$$],
    ['object_name(id integer, database integer)', 'sys.sysname', $$select (sys.named_elsewhere(id, database)).name$$],
    ['object_schema_name(id integer, database integer)', 'sys.sysname', $$select (sys.named_elsewhere(id, database)).schema$$],
    ['col_name(id integer, number integer)', 'sys.sysname',
      $$select columns.name::sys.sysname from sys.every_column as columns
        where columns.relation = id::oid and columns.number = col_name.number$$],
    ['col_length(object text, name text)', 'smallint',
      $$select types.bytes::smallint from sys.every_column as columns
        cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
        where columns.relation = sys.object_id(object)::oid and columns.name = col_length.name$$],
    ['index_col(object text, index integer, key integer)', 'sys.sysname',
      $$select columns.name::sys.sysname from sys.every_index_column as columns
        where columns.relation = sys.object_id(object)::oid and columns.number = index and columns.position = key$$],
    ['type_name(id integer)', 'sys.sysname',
      $$select types.name from sys.every_system_type as types where types.user_type_id = id
        union all select users.name from sys.every_user_type as users where users.oid = id::oid$$],
    [$$schema_id(name text default 'dbo')$$, 'integer',
      $$select schemas.schema_id from sys.schemas as schemas where lower(schemas.name) = lower(schema_id.name)$$],
    ['db_name()', 'sys.sysname',
      $$select case when current_schema() like 'pg\_temp\_%' then 'tempdb' else sys.current_database() end::sys.sysname$$],
    ['db_name(id integer)', 'sys.sysname',
      $$select databases.name::sys.sysname from sys.every_named_database as databases where databases.number = id$$],
    ['db_id()', 'smallint',
      $$select databases.number::smallint from sys.every_database as databases where databases.name = sys.current_database()$$],
    ['db_id(name text)', 'smallint',
      $$select databases.number::smallint from sys.every_named_database as databases where databases.name = lower(db_id.name)$$],
    ['has_dbaccess(name text)', 'integer',
      $$select case when exists (select from sys.every_named_database as databases
          where databases.name = lower(has_dbaccess.name))
        then 1 when exists (select from pg_catalog.pg_namespace where nspname = lower(has_dbaccess.name)) then 0 end$$],
    ['user_name()', 'sys.sysname', $$select current_user::sys.sysname$$],
    ['user_name(id integer)', 'sys.sysname',
      $$select users.name from sys.database_principals as users where users.principal_id = id$$],
    ['user_id()', 'integer', $$select oid::integer from pg_catalog.pg_roles where rolname = current_user$$],
    ['user_id(name text)', 'integer',
      $$select users.principal_id from sys.database_principals as users where users.name = user_id.name$$],
    ['suser_name()', 'sys.sysname', $$select session_user::sys.sysname$$],
    ['suser_name(id integer)', 'sys.sysname',
      $$select logins.name from sys.server_principals as logins where logins.principal_id = id$$],
    ['suser_id()', 'integer', $$select oid::integer from pg_catalog.pg_roles where rolname = session_user$$],
    ['suser_id(name text)', 'integer',
      $$select logins.principal_id from sys.server_principals as logins where logins.name = suser_id.name$$],
    ['suser_sname()', 'sys.sysname', $$select session_user::sys.sysname$$],
    ['suser_sname(sid bytea)', 'sys.sysname',
      $$select logins.name from sys.server_principals as logins where logins.sid = suser_sname.sid$$],
    ['original_login()', 'sys.sysname', $$select session_user::sys.sysname$$]
  ] loop
    execute format('create function sys.%s returns %s language sql stable as %L', variadic one);
  end loop;
end
$do$;

create function sys.type_id(name text) returns integer
language sql stable
as $$
  select types.user_type_id from sys.every_system_type as types where types.name = lower(sys.parsename(type_id.name, 1))
  union all
  select users.oid::integer from sys.every_user_type as users where sys.is_same_name(users.name, sys.parsename(type_id.name, 1))
  union all
  select types.user_type_id from sys.table_types as types where sys.is_same_name(types.name, sys.parsename(type_id.name, 1))
$$;

create function sys.schema_name(id integer default 1) returns sys.sysname
language sql stable
as $$
  -- it is called for each row
  select case when id = 1 then 'dbo'::sys.sysname
    else (select schemas.name from sys.schemas as schemas where schemas.schema_id = id) end
$$;

create function sys.is_member(role text) returns integer
language sql stable
as $$
  select case
    when lower(rtrim(role)) = 'public' then 1
    when lower(rtrim(role)) = 'db_owner' then 0
    when exists (select from pg_catalog.pg_roles where rolname = rtrim(role))
      then pg_catalog.pg_has_role(rtrim(role), 'member')::integer
  end
$$;

create function sys.is_srvrolemember(role text, login text default null) returns integer
language sql stable
as $$
  select case
    when lower(rtrim(role)) = 'public' then 1
    when lower(rtrim(role)) = 'sysadmin' then logins.rolsuper::integer
    when lower(rtrim(role)) in ('serveradmin', 'securityadmin', 'processadmin', 'setupadmin', 'bulkadmin', 'diskadmin',
      'dbcreator') then 0
  end
  -- null for an unknown login
  from pg_catalog.pg_roles as logins
  where logins.rolname = coalesce(rtrim(login), current_user)
$$;

-- The sequence behind a table's identity column.
create function sys.identity_of(object text) returns setof pg_catalog.pg_sequence
language sql stable
as $$
  select numbers.*
  from pg_catalog.pg_attribute as columns
  join pg_catalog.pg_sequence as numbers
    on numbers.seqrelid = pg_catalog.pg_get_serial_sequence(columns.attrelid::regclass::text, columns.attname)::regclass
  where columns.attrelid = sys.object_id(object)::oid and columns.attidentity <> '' and not columns.attisdropped
$$;

-- SQL Server: IDENT_CURRENT gives the seed where no value has been given yet.
create function sys.ident_current(object text) returns numeric
language sql stable
as $$
  select coalesce(
    case
      when pg_catalog.has_sequence_privilege(numbers.seqrelid, 'select, usage')
        then pg_catalog.pg_sequence_last_value(numbers.seqrelid)
    end,
    numbers.seqstart
  )::numeric(38, 0)
  from sys.identity_of(object) as numbers
$$;

create function sys.ident_seed(object text) returns numeric
language sql stable
as $$ select numbers.seqstart::numeric(38, 0) from sys.identity_of(object) as numbers $$;

create function sys.ident_incr(object text) returns numeric
language sql stable
as $$ select numbers.seqincrement::numeric(38, 0) from sys.identity_of(object) as numbers $$;
