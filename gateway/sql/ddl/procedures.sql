-- Creation and dropping of procedures compiled from T-SQL.

create or replace function tsql.create_procedure(action text, schema text, name text, definition text, source text)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  schema_oid constant oid := case schema when 'pg_temp' then pg_my_temp_schema() else to_regnamespace(quote_ident(schema)) end;
  old oid[];
  -- the group's name, and the number in it
  base constant text := regexp_replace(name, ';\d+$', '');
  number constant text := coalesce(substring(name from ';(\d+)$'), '1');
  first oid;
  owner name;
  statement text;
  statements text[] := '{}';
  properties text;
  former text;
begin
  if schema_oid is null then
    perform tsql.raise(911, 16, 1, format(
      'Database ''%s'' does not exist. Make sure that the name is entered correctly.', schema));
  end if;
  old := array(select p.oid from pg_proc p where p.pronamespace = schema_oid and lower(p.proname) = lower(name));
  if base <> name then
    first := (select min(p.oid) from pg_proc p where p.pronamespace = schema_oid and lower(p.proname) = lower(base));
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
  if to_regclass(format('%I.%I', schema, lower(name))) is not null then
    if action = 'create' then
      perform tsql.raise(2714, 16, 3, format('There is already an object named ''%s'' in the database.', name));
    end if;
    perform tsql.raise(2010, 16, 1, format('Cannot perform alter on ''%s'' because it is an incompatible object type.', name));
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
    former := (select listed.type from sys.every_numbered_procedure as listed where listed.oid = old[1]);
    properties := substring(obj_description(old[1], 'pg_proc') from '\n-- extended properties: \{.*\}$');
    execute format('drop routine %s', old[1]::regprocedure);
  end if;
  execute definition;
  execute format('revoke all on routine %I.%I from public', schema, name);
  execute format('comment on routine %I.%I is %L', schema, name, concat(source, properties));
  if former is not null then
    if former <> (
      select listed.type from sys.every_numbered_procedure as listed
      join pg_proc p on p.oid = listed.oid and p.pronamespace = schema_oid and p.proname = create_procedure.name
    ) then
      perform tsql.raise(2010, 16, 1, format('Cannot perform alter on ''%s'' because it is an incompatible object type.', name));
    end if;
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  if schema <> 'pg_temp' then
    notify ringlog_catalogue, 'procedures';
  end if;
end
$$;
comment on function tsql.create_procedure(text, text, text, text, text) is
$$Makes a compiled procedure: action is create, alter or create or alter, definition the PostgreSQL statement,
source the T-SQL, kept as its comment. Nobody but its owner may execute a new one; one that is altered keeps its
owner and rights. Runs with the caller's rights.
Errors: no such schema (911), the name is taken (2714, 2729), there is nothing to alter (208), or an object of
another kind (2010), p;2 without p (2730).$$;

create or replace function tsql.drop_routine(kind text, name text, routines oid[], if_exists boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
    notify ringlog_catalogue, 'procedures';
  end if;
end
$$;
comment on function tsql.drop_routine(text, text, oid[], boolean) is
$$Drops the procedure, with its group, or function found for a name. Errors: none or several of this name (3701).$$;

create or replace function tsql.drop_procedure(database text, schema text, name text, if_exists boolean) returns void
language sql set search_path = pg_catalog, pg_temp
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
