-- Creation and dropping of functions and triggers compiled from T-SQL.

create or replace function tsql.drop_function(database text, schema text, name text, if_exists boolean) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
  select tsql.drop_routine('function', name, array(
    select p.oid
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where lower(p.proname) = lower(name)
      and lower(n.nspname) = lower(coalesce(nullif(schema, ''), database))
      and p.prokind = 'f'
      and p.prorettype <> 'trigger'::regtype
      and p.prosrc like '%-- compiled from T-SQL, %'
  ), if_exists)
$$;
comment on function tsql.drop_function(text, text, text, boolean) is
$$Drops a compiled function of a database. Runs with the caller's rights. Errors: none or several of this name (3701).$$;

create or replace function tsql.is_owned(function text) returns boolean
language plpgsql immutable parallel safe
as $$
begin
  if not exists (
    select from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where p.proname = function and n.nspname = any (pg_catalog.current_schemas(false)) and n.nspname <> 'pg_catalog'
  ) then
    perform tsql.fail(4121, format('Cannot find either column "dbo" or the user-defined function or aggregate '
      '"dbo.%s", or the name is ambiguous.', function));
  end if;
  return true;
end
$$;
comment on function tsql.is_owned(text) is
$$True where a schema of the search path has a function of this name; error 4121 where only PostgreSQL has one. It is immutable
for PostgreSQL to ask when it plans a statement, and not for each row.$$;

create or replace function tsql.if_owned(value anyelement, is_owned boolean) returns anyelement
language sql immutable parallel safe as 'select value';
comment on function tsql.if_owned(anyelement, boolean) is
  'The value: PostgreSQL evaluates what else is given when it plans the statement.';

create or replace function tsql.create_rows_function(
  action text, schema text, name text, arguments text, path text, asked text, body text, source text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  columns text;
begin
  -- the query is analysed with the function's search path
  perform set_config('search_path', path, true);
  execute 'create temporary view "tsql columns" as ' || asked;
  perform set_config('search_path', 'pg_catalog, pg_temp', true);
  select string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
  into columns
  from pg_attribute a
  where a.attrelid = 'pg_temp."tsql columns"'::regclass and a.attnum > 0;
  drop view pg_temp."tsql columns";
  perform tsql.create_procedure(action, schema, name, format(
    'create function %I.%I(%s) returns table (%s) language sql stable security definer set search_path = %s as %L',
    schema, name, arguments, columns, path, body), source);
end
$$;
comment on function tsql.create_rows_function(text, text, text, text, text, text, text, text) is
$$Makes a compiled function that gives the rows of one query: arguments are those of the PostgreSQL statement, path the
search path of the function, asked the query with nulls for its parameters, body the function's text. The other
arguments, rights and errors are those of tsql.create_procedure.$$;

create or replace function tsql.fired() returns text
language plpgsql stable
as $$
begin
  if pg_trigger_depth() > 32 then
    perform tsql.fail(217,
      'Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).');
  end if;
  return case when pg_trigger_depth() > 1 then coalesce(current_setting('tsql.trigger', true), '') else '' end;
end
$$;
comment on function tsql.fired() is
$$In a trigger: the compiled trigger inside which it fires, by schema and name; nothing for one that a statement of the
client fires. Error 217 beyond 32 levels.$$;

create or replace function tsql.triggers_named(schema text, name text) returns table (oid oid, function oid)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select t.oid, t.tgfoid
  from pg_trigger t
  join pg_class c on c.oid = t.tgrelid
  join pg_namespace n on n.oid = c.relnamespace
  join pg_proc p on p.oid = t.tgfoid
  where lower(n.nspname) = lower(schema)
    and lower(p.proname) = any (array[lower(name), lower(name) || ' insert', lower(name) || ' update', lower(name) || ' delete'])
    and p.prosrc like '%-- compiled from T-SQL, %'
$$;
comment on function tsql.triggers_named(text, text) is
$$The triggers that PostgreSQL has, one for each event, of a compiled trigger, and their functions.$$;

-- `update (column)` of a trigger: after the statement PostgreSQL passes a trigger the rows, not the columns named.
-- Triggers before the statement know these, and note them under a mark and the nesting depth of the statement.
create or replace function tsql.note_update() returns trigger
language plpgsql
as $$
declare
  setting text := format('tsql.updates_%s_%s', pg_trigger_depth(), md5(tg_argv[0]));
begin
  perform set_config(setting,
    case tg_nargs when 1 then '' else current_setting(setting, true) || quote_literal(tg_argv[1]) end, true);
  return null;
end
$$;
comment on function tsql.note_update() is 'Begins a list of columns, or adds one to it.';

create or replace function tsql.updates(mark text, of_column text) returns boolean
language sql stable
return coalesce(strpos(current_setting(format('tsql.updates_%s_%s', pg_trigger_depth(), md5(mark)), true),
  quote_literal(of_column)) > 0, false);
comment on function tsql.updates(text, text) is 'Whether the statement that fired the trigger names this column in SET.';

create or replace procedure tsql.watch_updates(target text, schema text, trigger_name text)
language plpgsql
as $$
declare
  asked record;
begin
  for asked in
    select mark, of_column, row_number() over (order by of_column nulls first) - 1 as index
    from (
      select distinct replace(said[1], '''''', '''') as mark, replace(said[2], '''''', '''') as of_column
      from pg_catalog.pg_proc p
      cross join regexp_matches(p.prosrc, $re$tsql\.updates\('((?:[^']|'')*)', '((?:[^']|'')*)'\)$re$, 'g') as said
      where p.oid = to_regprocedure(format('%I.%I()', schema, trigger_name))
    ) as columns_
    group by grouping sets ((mark), (mark, of_column))
  loop
    execute format('create trigger %I before update %s on %s for each statement execute function tsql.note_update(%s)',
      trigger_name || ' ' || asked.index, 'of ' || quote_ident(asked.of_column), target,
      concat_ws(', ', quote_literal(asked.mark), quote_literal(asked.of_column)));
  end loop;
end
$$;
comment on procedure tsql.watch_updates(text, text, text) is 'Creates triggers that note the columns that a trigger tests with update().';

create or replace procedure tsql.forget_updates(of_function oid)
language plpgsql
as $$
declare
  helping record;
begin
  for helping in
    select t.tgname, t.tgrelid::regclass as target
    from pg_catalog.pg_trigger own
    join pg_catalog.pg_trigger t on t.tgrelid = own.tgrelid and t.tgname ~ ' [0-9]+$'
      and regexp_replace(t.tgname, ' [0-9]+$', '') = own.tgname
    where own.tgfoid = of_function and t.tgfoid = 'tsql.note_update'::regproc
  loop
    execute format('drop trigger %I on %s', helping.tgname, helping.target);
  end loop;
end
$$;
comment on procedure tsql.forget_updates(oid) is 'Drops the triggers that note columns for a trigger.';

create or replace function tsql.drop_trigger(database text, schema text, name text, if_exists boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  found oid[] := array(
    select named.function from tsql.triggers_named(coalesce(nullif(schema, ''), database), name) as named
  );
  function oid;
begin
  if found = '{}' and not if_exists then
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the trigger ''%s'', because it does not exist or you do not have permission.', name));
  end if;
  foreach function in array found loop
    call tsql.forget_updates(function);
    execute format('drop function %s cascade', function::regprocedure);
  end loop;
  -- the gateway's sessions know which events fire one
  notify ringlog_catalogue, 'columns';
end
$$;
comment on function tsql.drop_trigger(text, text, text, boolean) is
$$Drops a compiled trigger of a database. Runs with the caller's rights. Error: there is none (3701).$$;

create or replace function tsql.create_trigger(
  action text, schema text, target text, name text, events text[], definitions text[], source text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  exists_already boolean := exists (select from tsql.triggers_named(schema, name));
  properties constant text := (
    select substring(obj_description(p.oid, 'pg_proc') from '\n-- extended properties: \{.*\}$') from pg_proc p
    where p.pronamespace = to_regnamespace(quote_ident(schema)) and lower(p.proname) = lower(name)
      and p.prorettype = 'trigger'::regtype
  );
  own text;
  left_over regprocedure;
begin
  if (select relkind = 'v' from pg_class where oid = to_regclass(target)) is not false then
    perform tsql.raise(8197, 16, 4, format('The object ''%s'' does not exist or is invalid for this operation.',
      (parse_ident(target))[cardinality(parse_ident(target))]));
  end if;
  if action = 'alter' and not exists_already then
    perform tsql.raise(208, 16, 6, format('Invalid object name ''%s''.', name));
  end if;
  if exists_already then
    if action = 'create' then
      perform tsql.raise(2714, 16, 2, format('There is already an object named ''%s'' in the database.', name));
    end if;
    perform tsql.drop_trigger(schema, '', name, false);
  end if;
  -- left over by a dropped table
  for left_over in
    select p.oid
    from pg_proc p
    where p.pronamespace = to_regnamespace(quote_ident(schema))
      and lower(p.proname) = any (array[lower(name), lower(name) || ' insert', lower(name) || ' update', lower(name) || ' delete'])
      and p.prorettype = 'trigger'::regtype
      and p.prosrc like '%-- compiled from T-SQL, %'
      and not exists (select from pg_trigger t where t.tgfoid = p.oid)
  loop
    execute format('drop function %s', left_over);
  end loop;
  if exists (select from pg_proc p where p.pronamespace = to_regnamespace(quote_ident(schema)) and lower(p.proname) = lower(name)) then
    perform tsql.raise(2714, 16, 2, format('There is already an object named ''%s'' in the database.', name));
  end if;
  for index in 1 .. cardinality(events) loop
    own := case index when 1 then name else name || ' ' || events[index] end;
    execute definitions[index];
    execute format('revoke all on function %I.%I() from public', schema, own);
    execute format('comment on function %I.%I() is %L', schema, own, concat(source, case index when 1 then properties end));
    execute format(
      'create trigger %I after %s on %s referencing %s for each statement execute function %I.%I()',
      own, events[index], target,
      case events[index]
        when 'insert' then 'new table as inserted'
        when 'delete' then 'old table as deleted'
        else 'new table as inserted old table as deleted'
      end,
      schema, own);
    if events[index] = 'update' then
      call tsql.watch_updates(target, schema, own);
    end if;
  end loop;
  notify ringlog_catalogue, 'columns';
end
$$;
comment on function tsql.create_trigger(text, text, text, text, text[], text[], text) is
$$Makes a compiled trigger: action is create, alter or create or alter, target the table, definitions the functions of
the events, source the T-SQL, kept as their comment. Runs with the caller's rights.
Errors: no such table (8197), the name is taken (2714), there is nothing to alter (208).$$;
