-- Lookup, creation and dropping of procedures compiled from T-SQL.

create or replace function tsql.database_of(schema text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('sys.every_inner_schema') is null then
    return null;
  end if;
  return (select schemas.database from sys.every_inner_schema as schemas where schemas.name = schema);
end
$$;

comment on function tsql.database_of(text) is 'The database that has the schema in it; null for a schema that is a database.';


create or replace view tsql.every_callable as
select
  p.oid,
  p.proname as name,
  case when n.oid = pg_catalog.pg_my_temp_schema() then 'pg_temp' else lower(n.nspname) end as schema
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where p.prokind in ('f', 'p')
  and p.provariadic = 0
  and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
  and n.nspname not in ('pg_catalog', 'information_schema', 'tsql', 'tsql_global', 'sys', 'sybsystemprocs');

comment on view tsql.every_callable is 'What EXECUTE may call, with the name of the schema in small letters.';
grant select on tsql.every_callable to public;

create or replace function tsql.procedures_named(database text, schema text, procedure text)
returns table (oid oid)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  stored constant name := tsql.stored_name(procedure);
  -- the first has precedence
  schemas constant text[] := case
    when procedure like '#%' then '{pg_temp}'
    when schema = '' then array[lower(database), lower(tsql.database_of(database)), 'ringlog', 'public']
    else array[lower(schema), 'ringlog']
  end;
  named oid[] := array(
    select called.oid from tsql.every_callable as called
    where called.name = any (array[procedure, stored]::name[]) and called.schema = any (schemas)
  );
begin
  if named = '{}' then
    -- a name with capitals of PostgreSQL's, for which there is no index
    named := array(
      select called.oid from tsql.every_callable as called where lower(called.name) = stored and called.schema = any (schemas)
    );
  end if;
  return query
  select ranked.oid
  from (
    select called.oid, rank() over (order by array_position(schemas, called.schema), called.name = procedure desc) as place
    from tsql.every_callable as called
    where called.oid = any (named)
  ) as ranked
  where ranked.place = 1;
end
$$;

comment on function tsql.procedures_named(text, text, text) is
$$The procedures with a name in a database: those of the named schema ('' for the current one and its database), otherwise ringlog's.
Other databases are not searched. #p is a procedure of the session.$$;


create or replace function tsql.source(procedure oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select said.text
  from pg_proc p
  cross join lateral regexp_replace(obj_description(p.oid, 'pg_proc'), '\n-- extended properties: \{.*\}$', '') as said (text)
  where p.oid = procedure
    and p.prosrc like '%-- compiled from T-SQL, ' || md5(said.text) || '%'
$$;

comment on function tsql.source(oid) is
$$The T-SQL of a compiled procedure, from its comment; null for other procedures, and if the procedure or its comment was
changed since.$$;


create or replace function tsql.text_to_run(procedure oid, out source text, out tables oid[])
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  called pg_proc := (select p from pg_proc p where p.oid = procedure);
begin
  if called.oid is null then
    raise exception using errcode = 'undefined_function', message = 'the procedure is not there any more';
  end if;
  if not has_schema_privilege(called.pronamespace, 'usage') then
    raise exception using errcode = 'insufficient_privilege',
      message = format('permission denied for schema %s', called.pronamespace::regnamespace);
  end if;
  if not has_function_privilege(procedure, 'execute') then
    raise exception using errcode = 'insufficient_privilege',
      message = format('permission denied for procedure %s', called.proname);
  end if;
  source := tsql.source(procedure);
  if source is null then
    perform tsql.raise(2812, 16, 1, format(
      'The text of ''%s'' is not the one that it was made of: make it anew.', called.proname));
  end if;
  tables := tsql.temporary_tables();
end
$$;

comment on function tsql.text_to_run(oid) is
$$The T-SQL of a procedure that the gateway will run for the caller, and the temporary tables of the session. Errors: the
caller may not execute it (42501), it does not exist (42883), its comment was changed (2812).$$;


create or replace function tsql.refuse_call(procedure text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.raise(2812, 16, 1, format(
    'Procedure ''%s'' is run by the gateway and not by PostgreSQL: call it by TDS. A procedure of T-SQL that calls it '
    'and was made by an earlier version has to be made anew.', procedure), 0, procedure);
end
$$;

comment on function tsql.refuse_call(text) is
$$The body of a procedure whose T-SQL the gateway runs: raises an error for a call inside PostgreSQL (2812).$$;


create or replace function tsql.procedure_group(procedure oid)
returns oid[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select member.oid
    from pg_proc first
    join pg_proc member on member.pronamespace = first.pronamespace
      and (member.oid = first.oid or member.proname ~ ';\d+$' and starts_with(lower(member.proname), lower(first.proname) || ';'))
    where first.oid = procedure and member.prokind in ('f', 'p')
    order by length(member.proname), member.proname
  )
$$;

comment on function tsql.procedure_group(oid) is
$$A procedure and those of its group, by number: p;2 is a procedure of this name, p;1 is p.$$;


create or replace function tsql.create_procedure(action text, schema text, name text, definition text, source text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place constant oid := case schema when 'pg_temp' then pg_my_temp_schema() else to_regnamespace(quote_ident(schema)) end;
  old oid[];
  -- the group's name, and the number in it
  base constant text := regexp_replace(name, ';\d+$', '');
  number constant text := coalesce(substring(name from ';(\d+)$'), '1');
  first oid;
  owner name;
  statement text;
  statements text[] := '{}';
  properties text;
begin
  if place is null then
    perform tsql.raise(911, 16, 1, format(
      'Database ''%s'' does not exist. Make sure that the name is entered correctly.', schema));
  end if;
  old := array(select p.oid from pg_proc p where p.pronamespace = place and lower(p.proname) = lower(name));
  if base <> name then
    first := (select min(p.oid) from pg_proc p where p.pronamespace = place and lower(p.proname) = lower(base));
    if first is null then
      perform tsql.raise(2730, 11, 1, format('Cannot create procedure ''%s'' with a group number of %s because a procedure '
        'with the same name and a group number of 1 does not currently exist in the database. Must execute CREATE PROCEDURE '
        '''%s'';1 first.', base, number, base));
    elsif not pg_has_role((select p.proowner from pg_proc p where p.oid = first), 'usage') then
      raise exception using errcode = 'insufficient_privilege', message = format('must be owner of procedure %s', base);
    end if;
  end if;
  if action = 'create' and old <> '{}' and (base <> name or cardinality(tsql.procedure_group(old[1])) > 1) then
    perform tsql.raise(2729, 16, 1, format('Procedure ''%s'' group number %s already exists in the database. '
      'Choose another procedure name.', base, number));
  end if;
  if action = 'create' and old <> '{}' then
    perform tsql.raise(2714, 16, 3, format('There is already an object named ''%s'' in the database.', name));
  end if;
  if action = 'alter' and old = '{}' then
    perform tsql.raise(208, 16, 6, format('Invalid object name ''%s''.', name));
  end if;
  if cardinality(old) > 1 or exists (
    select from pg_proc p where p.oid = any (old) and p.prosrc not like '%-- compiled from T-SQL, %'
  ) then
    perform tsql.raise(2714, 16, 3, format(
      'There is already a function of PostgreSQL named ''%s'' in the database: drop it, or take another name.', name));
  end if;
  first := coalesce(old[1], first);
  if first is not null then
    -- keeps rights and owner; a group has those of its first procedure
    select pg_get_userbyid(p.proowner) into owner from pg_proc p where p.oid = first;
    statements := array(
      select format('grant execute on routine %I.%I to %s%s', schema, name,
        case held.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(held.grantee)) end,
        case when held.is_grantable then ' with grant option' else '' end)
      from pg_proc p cross join lateral aclexplode(p.proacl) as held
      where p.oid = first and held.grantee <> p.proowner
    );
    if owner <> current_user then
      statements := statements || format('alter routine %I.%I owner to %I', schema, name, owner);
    end if;
  end if;
  if old <> '{}' then
    properties := substring(obj_description(old[1], 'pg_proc') from '\n-- extended properties: \{.*\}$');
    execute format('drop routine %s', old[1]::regprocedure);
  end if;
  execute definition;
  execute format('revoke all on routine %I.%I from public', schema, name);
  execute format('comment on routine %I.%I is %L', schema, name, concat(source, properties));
  foreach statement in array statements loop
    execute statement;
  end loop;
  if schema <> 'pg_temp' then
    notify ringlog_catalogue;
  end if;
end
$$;

comment on function tsql.create_procedure(text, text, text, text, text) is
$$Makes a compiled procedure: action is create, alter or create or alter, definition the PostgreSQL statement,
source the T-SQL, kept as its comment. Nobody but its owner may execute a new one; one that is altered keeps its
owner and rights. Runs with the caller's rights.
Errors: no such schema (911), the name is taken (2714, 2729), there is nothing to alter (208), p;2 without p (2730).$$;


create or replace function tsql.drop_routine(kind text, name text, routines oid[], if_exists boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  is_temporary boolean;
begin
  if routines = '{}' then
    if not if_exists then
      perform tsql.raise(3701, 11, 5, format(
        'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
    end if;
    return;
  end if;
  if cardinality(routines) > 1 then
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the %s ''%s'': there are several of this name.', kind, name));
  end if;
  is_temporary := (select pronamespace = pg_my_temp_schema() from pg_proc where oid = routines[1]);
  execute 'drop routine ' || (
    select string_agg(member::regprocedure::text, ', ') from unnest(tsql.procedure_group(routines[1])) as member);
  if not is_temporary then
    notify ringlog_catalogue;
  end if;
end
$$;

comment on function tsql.drop_routine(text, text, oid[], boolean) is
$$Drops the procedure, with its group, or function found for a name. Errors: none or several of this name (3701).$$;


create or replace function tsql.drop_procedure(database text, schema text, name text, if_exists boolean)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select tsql.drop_routine('procedure', name, array(
    -- ringlog's procedures are found in every database, and dropped only in their own
    select p.oid
    from tsql.procedures_named(database, schema, name) as named
    join pg_proc p on p.oid = named.oid
    join pg_namespace n on n.oid = p.pronamespace
    where n.oid = pg_my_temp_schema() or lower(n.nspname) = lower(coalesce(nullif(schema, ''), database))
  ), if_exists)
$$;

comment on function tsql.drop_procedure(text, text, text, boolean) is
$$Drops the procedure with a name in a database. Runs with the caller's rights. Errors: none or several of this name
(3701).$$;


create or replace function tsql.demand_declared(relation regclass, columns jsonb)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if tsql.is_declared_otherwise(relation, columns) then
    perform tsql.fail(2801, format(
      'The definition of object ''%s'' has changed since it was compiled: ALTER the procedure, function or trigger '
      'that uses it.', (select relname from pg_class where oid = relation)));
  end if;
end
$$;

comment on function tsql.demand_declared(regclass, jsonb) is
$$Error 2801 if a table's columns are declared otherwise than a procedure was compiled with. It is immutable, and its
arguments are constants: PostgreSQL evaluates it when it plans the procedure's first statement, and again after a change
of the table.$$;


create or replace function tsql.is_declared_otherwise(relation oid, columns jsonb)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from jsonb_each_text(columns) as known (name, declared)
    left join (
      select a.attname, concat(n.nspname || '.', t.typname, ' ', a.atttypmod, ' ', said.found[2]) as declared
      from pg_attribute a
      join pg_type t on t.oid = a.atttypid
      left join pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
      left join lateral regexp_match(
        col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') said (found) on true
      where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
    ) as actual on actual.attname = known.name
    where actual.declared is distinct from known.declared
  )
$$;

comment on function tsql.is_declared_otherwise(oid, jsonb) is
$$Whether columns of a table have other types than the given ones, by their names: type, modifier and T-SQL's declaration
as the gateway reads them; null for no such column.$$;


create or replace function tsql.outdated()
returns table (schema text, source text, read_as text, owner text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  one record;
  is_outdated boolean;
begin
  for one in
    select p.oid, case when p.pronamespace = pg_my_temp_schema() then '' else n.nspname end as schema,
      substring(p.prosrc from '\n-- bound as ([a-z0-9 ]+): ') as read_as,
      substring(p.prosrc from '\n-- bound as [a-z0-9 ]+: ([^\n]+)\n') as bound, pg_get_userbyid(p.proowner) as owner
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where p.prosrc like E'%\n-- bound as %' and pg_has_role(session_user, p.proowner, 'member')
      -- not of a trigger that went with its table: it would be made on a new one of the name
      and (p.prorettype <> 'trigger'::regtype or exists (select from pg_trigger where tgfoid = p.oid))
      and (not starts_with(n.nspname, 'pg_temp_') or n.oid = pg_my_temp_schema())
  loop
    begin
      is_outdated := exists (
        select from jsonb_each(one.bound::jsonb) as named (name, columns)
        where tsql.is_declared_otherwise(to_regclass(named.name), named.columns) and to_regclass(named.name) is not null
      );
    exception when data_exception or syntax_error_or_access_rule_violation then
      is_outdated := false;
    end;
    if is_outdated then
      schema := one.schema;
      source := tsql.source(one.oid);
      read_as := one.read_as;
      owner := one.owner;
      return next;
    end if;
  end loop;
end
$$;

comment on function tsql.outdated() is
$$The procedures, functions and triggers compiled from T-SQL of which a table has changed since, of the owners that the
session may act as: their schema ('' for the session's own), T-SQL, how it was read, and the owner.$$;
