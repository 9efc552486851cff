-- What procedures compiled from T-SQL stand on: how they are made and dropped, how they call each
-- other, how their errors get their numbers, what their transactions are.

do $$
begin
  if to_regtype('tsql.error') is null then
    create type tsql.error as (
      number integer, severity integer, state integer, message text, line integer, procedure text);
    comment on type tsql.error is 'An error or message as T-SQL tells it.';
  end if;
  if to_regtype('tsql.call_result') is null then
    create type tsql.call_result as (status integer, outputs text[], error integer, rows integer);
    comment on type tsql.call_result is
      'What a called procedure leaves: its return status, the outputs asked for as texts in the order of the '
      'arguments (null for the others), and @@error and @@rowcount where it tells them.';
  end if;
end
$$;


-- Errors

create or replace function tsql.raise(
  number integer, severity integer, state integer, message text, line integer default 0, procedure text default ''
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using errcode = 'TS001', message = coalesce(message, ''),
    detail = format('%s %s %s %s %s', number, severity, state, coalesce(line, 0), procedure);
end
$$;

comment on function tsql.raise(integer, integer, integer, text, integer, text) is
$$Raises an error with a number of T-SQL's (SQLSTATE TS001). Its detail is number, severity, state, line and
procedure.$$;


create or replace function tsql.tell(
  number integer, severity integer, state integer, message text, line integer, procedure text
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if severity > 19 or (severity > 10 and current_setting('tsql.try', true) = 'on') then
    perform tsql.raise(number, severity, state, message, line, procedure);
  end if;
  raise notice using errcode = '01R03', message = coalesce(message, ''),
    detail = format('%s %s %s %s %s', number, severity, state, line, procedure);
end
$$;

comment on function tsql.tell(integer, integer, integer, text, integer, text) is
$$Sends an error or a message that ends nothing, as RAISERROR does: a notice of SQLSTATE 01R03 with
the detail of tsql.raise. An error (severity above 10) is raised instead while a caller has a TRY block open, and
so is one of severity 20 or more.$$;


create or replace function tsql.caught(sqlstate text, message text, detail text, line integer, procedure text)
returns tsql.error
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  words text[];
  number integer;
begin
  if sqlstate = 'TS001' then
    words := regexp_match(detail, '^(-?\d+) (\d+) (-?\d+) (\d+) (.*)$');
    return (words[1], words[2], words[3], message, words[4], words[5])::tsql.error;
  end if;
  number := tsql.error_number(sqlstate);
  return (
    number,
    tsql.error_severity(number),
    1,
    case when tsql.own_message(sqlstate, message) is not null then tsql.own_message(sqlstate, message)
      else case when coalesce(detail, '') = '' then message
      when right(message, 1) in ('.', ':', ';', '!', '?') then message || ' ' || detail
      else message || '. ' || detail end
      || case
        -- of tsql.own_state
        when sqlstate = 'S2627' then ' (SQLSTATE 23505)'
        when sqlstate = 'S8672' then ' (SQLSTATE 21000)'
        when sqlstate ~ '^S\d{4}$' then ''
        else format(' (SQLSTATE %s)', sqlstate)
      end
    end,
    line,
    procedure
  )::tsql.error;
end
$$;

comment on function tsql.caught(text, text, text, integer, text) is
$$The T-SQL error for an error that PL/pgSQL has caught in this line of a procedure.$$;


create or replace function tsql.tell_caught(sqlstate text, message text, detail text, line integer, procedure text)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  error tsql.error := tsql.caught(sqlstate, message, detail, line, procedure);
begin
  perform tsql.tell(error.number, error.severity, error.state, error.message, error.line, error.procedure);
  if error.number in (515, 547, 2601, 2627, 8152) then
    perform tsql.tell(3621, 10, 0, 'The statement has been terminated.', error.line, error.procedure);
  end if;
  return error.number;
end
$$;

comment on function tsql.tell_caught(text, text, text, integer, text) is
$$Sends a caught error, after which the procedure continues. Returns its number.$$;


create or replace function tsql.leave_error(number integer, calls boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('tsql.error', number::text, true);
  if calls or number <> 0 then
    raise notice using errcode = '01R04', message = number::text;
  end if;
end
$$;

comment on function tsql.leave_error(integer, boolean) is
$$Passes the value of @@error after the call to the caller, procedure or client, by a setting and a notice of SQLSTATE
01R04; the last notice counts. calls: the procedure has called others, whose errors are its own no longer.$$;


create or replace function tsql.known(value integer, variable text)
returns integer
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null then
    perform tsql.raise(102, 15, 1, format('%s is not known after the call of a procedure that does not use it.', variable));
  end if;
  return value;
end
$$;

comment on function tsql.known(integer, text) is $$The value of @@rowcount, or an error where it is not known.$$;


create or replace function tsql.missing(procedure text, parameter text, type anyelement)
returns anyelement
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.raise(201, 16, 4, format(
    'Procedure or function ''%s'' expects parameter ''%s'', which was not supplied.', procedure, parameter));
  return type;
end
$$;

comment on function tsql.missing(text, text, anyelement) is
$$The default of a parameter that has none and follows one that has: error 201.$$;


-- The session

create or replace function tsql.caller()
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- a procedure runs as its owner, and on a connection shared with others the login is the gateway's
  select case session_user when 'ringlog_gateway' then current_setting('role') else session_user end
$$;

comment on function tsql.caller() is $$The login on whose behalf a procedure runs: suser_name().$$;


create or replace function tsql.last_identity()
returns numeric
language plpgsql
as $$
begin
  return lastval();
exception when object_not_in_prerequisite_state then
  return null;
end
$$;

comment on function tsql.last_identity() is $$@@identity: the number an identity column was last given here.$$;


create or replace function tsql.advance_identity(target text)
returns void
language plpgsql
as $$
declare
  column_ name;
  numbers regclass;
  ascends boolean;
  newest bigint;
begin
  select attname, pg_get_serial_sequence(target, attname) into column_, numbers
  from pg_attribute
  where attrelid = target::regclass and attidentity <> '' and not attisdropped;
  if numbers is null then
    return;
  end if;
  select seqincrement > 0 into ascends from pg_sequence where seqrelid = numbers;
  execute format('select %s(%I)::bigint from %s', case when ascends then 'max' else 'min' end, column_, target)
  into newest;
  perform from pg_sequence
  where seqrelid = numbers and case
    when ascends then newest > coalesce(pg_sequence_last_value(numbers), seqstart - seqincrement)
    else newest < coalesce(pg_sequence_last_value(numbers), seqstart - seqincrement)
  end;
  if found then
    perform setval(numbers, newest);
  end if;
end
$$;

comment on function tsql.advance_identity(text) is
$$After explicit values for an identity column: a value beyond the numbers given so far becomes the current one (SQL Server,
"SET IDENTITY_INSERT").$$;


-- Transactions

create or replace function tsql.transaction_count()
returns integer
language sql
stable
as $$ select coalesce(nullif(current_setting('tsql.trancount', true), ''), '0')::integer $$;

comment on function tsql.transaction_count() is $$@@trancount: the caller's transactions and the procedure's.$$;


create or replace function tsql.begin_transaction()
returns void
language sql
as $$ select set_config('tsql.trancount', (tsql.transaction_count() + 1)::text, true) $$;

comment on function tsql.begin_transaction() is $$Counts a transaction that a procedure begins.$$;


create or replace function tsql.commit_transaction()
returns void
language sql
as $$ select set_config('tsql.trancount', (tsql.transaction_count() - 1)::text, true) $$;

comment on function tsql.commit_transaction() is $$Counts a transaction that a procedure commits.$$;


create or replace function tsql.roll_back(line integer, procedure text)
returns void
language plpgsql
as $$
begin
  if tsql.transaction_count() > 1 then
    perform tsql.raise(3931, 16, 1, 'ROLLBACK TRANSACTION in a procedure would undo the transaction of its caller: '
      'only the caller can roll it back.', line, procedure);
  end if;
end
$$;

comment on function tsql.roll_back(integer, text) is
$$Refuses the rollback of a transaction that a procedure has begun inside its caller's.$$;


create or replace function tsql.rollback_outside(line integer, procedure text)
returns void
language plpgsql
as $$
begin
  perform tsql.roll_back(line, procedure) where tsql.transaction_count() > 1;
  if tsql.transaction_count() = 1 then
    perform tsql.raise(3931, 16, 1, 'ROLLBACK TRANSACTION in a procedure would undo the transaction of its caller: '
      'only the caller can roll it back.', line, procedure);
  end if;
  perform tsql.tell(
    3903, 16, 1, 'The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.', line, procedure);
end
$$;

comment on function tsql.rollback_outside(integer, text) is
$$ROLLBACK where a procedure has begun no transaction: error 3903, or refused, since it would be the caller's.$$;


create or replace function tsql.commit_outside(line integer, procedure text)
returns void
language plpgsql
as $$
begin
  if tsql.transaction_count() > 0 then
    perform tsql.raise(3931, 16, 1, 'COMMIT TRANSACTION in a procedure would commit the transaction of its caller: '
      'only the caller can commit it.', line, procedure);
  end if;
  perform tsql.tell(
    3902, 16, 1, 'The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.', line, procedure);
end
$$;

comment on function tsql.commit_outside(integer, text) is
$$COMMIT where a procedure has begun no transaction: error 3902, or refused, since it would be the caller's.$$;


-- Temporary tables

create or replace function tsql.drop_temporary(names text[], if_exists boolean)
returns void
language plpgsql
as $$
declare
  name text;
begin
  -- those that result sets were read from before
  for name in
    select c.relname from pg_catalog.pg_class c
    where c.relnamespace = pg_catalog.pg_my_temp_schema() and c.relkind = 'r' and c.relname like '#@left %'
  loop
    begin
      execute format('drop table pg_temp.%I', name);
    exception when object_in_use or insufficient_privilege then
      null;
    end;
  end loop;
  foreach name in array names loop
    if to_regclass(format('pg_temp.%I', name)) is null then
      if not if_exists then
        perform tsql.raise(3701, 11, 5, format(
          'Cannot drop the table ''%s'', because it does not exist or you do not have permission.', name));
      end if;
      continue;
    end if;
    begin
      execute format('drop table pg_temp.%I', name);
    exception when object_in_use then
      -- a result set still has to be read from it
      execute format('alter table pg_temp.%I rename to %I', name, '#@left ' || gen_random_uuid());
    end;
  end loop;
end
$$;

comment on function tsql.drop_temporary(text[], boolean) is
$$Drops temporary tables of a procedure, at its end or where it says so. One that a result set is still read from
gets another name, and is dropped by the next call, or goes with the session. Error: there is none (3701).$$;


-- Procedures

create or replace function tsql.procedures_named(database text, schema text, procedure text)
returns table (oid oid)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with named as (
    select p.oid, rank() over (
      order by lower(n.nspname) = lower(coalesce(nullif(schema, ''), database)) desc, n.nspname = 'ringlog' desc,
        p.proname = procedure desc
    ) as place
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where lower(p.proname) = lower(procedure)
      and p.prokind in ('f', 'p')
      and p.provariadic = 0
      and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
      and n.nspname not in ('pg_catalog', 'information_schema', 'tsql', 'sys', 'sybsystemprocs')
      and case
        when procedure like '#%' then n.oid = pg_my_temp_schema()
        when n.nspname = 'ringlog' then true
        when schema = '' then n.nspname in (database, 'public')
        else lower(n.nspname) = lower(schema)
      end
  )
  select named.oid from named where place = 1
$$;

comment on function tsql.procedures_named(text, text, text) is
$$The procedures that a name means in a database: those of the schema it names ('' for none: the database's own),
else ringlog's. No other database is looked into. #p is the session's own.$$;


create or replace function tsql.source(procedure oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select obj_description(p.oid, 'pg_proc')
  from pg_proc p
  where p.oid = procedure
    and p.prosrc like '%-- compiled from T-SQL, ' || md5(obj_description(p.oid, 'pg_proc')) || '%'
$$;

comment on function tsql.source(oid) is
$$The T-SQL that a procedure was compiled from, which is its comment; null when it was not, or when somebody has
changed one of the two.$$;


create or replace function tsql.temporary_tables()
returns oid[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select c.oid from pg_class c where c.relnamespace = pg_my_temp_schema() and c.relkind = 'r' order by c.oid
  )
$$;

comment on function tsql.temporary_tables() is $$The temporary tables of the session.$$;


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
$$The T-SQL of a procedure that the gateway is about to run for the caller, and the temporary tables of the session.
Errors: the caller may not execute it (42501), it is not there (42883), somebody has changed its comment (2812).$$;


create or replace function tsql.forget_tables(before oid[])
returns void
language sql
as $$
  select tsql.drop_temporary(array_agg(c.relname::text), true)
  from pg_catalog.pg_class c
  where c.relnamespace = pg_catalog.pg_my_temp_schema()
    and c.relkind = 'r'
    and c.relname ~ '^#[^#]'
    and c.relname not like '#@left %'
    and c.oid <> all (before)
  having count(*) > 0
$$;

comment on function tsql.forget_tables(oid[]) is
$$Drops the temporary tables that a procedure or a text has left, which the session did not have before it.$$;


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
$$The body of a procedure whose T-SQL the gateway runs: an error for whoever calls it in PostgreSQL (2812).$$;


create or replace function tsql.create_procedure(action text, schema text, name text, definition text, source text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place constant oid := case schema when 'pg_temp' then pg_my_temp_schema() else to_regnamespace(quote_ident(schema)) end;
  old oid[];
  owner name;
  statement text;
  statements text[] := '{}';
begin
  if place is null then
    perform tsql.raise(911, 16, 1, format('Database ''%s'' does not exist.', schema));
  end if;
  old := array(select p.oid from pg_proc p where p.pronamespace = place and lower(p.proname) = lower(name));
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
  if old <> '{}' then
    -- who may execute it, and whose it is, stays as it was
    select pg_get_userbyid(p.proowner) into owner from pg_proc p where p.oid = any (old);
    statements := array(
      select format('grant execute on routine %I.%I to %s%s', schema, name,
        case held.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(held.grantee)) end,
        case when held.is_grantable then ' with grant option' else '' end)
      from pg_proc p cross join lateral aclexplode(p.proacl) as held
      where p.oid = any (old) and held.grantee <> p.proowner
    );
    if owner <> current_user then
      statements := statements || format('alter routine %I.%I owner to %I', schema, name, owner);
    end if;
    execute format('drop routine %s', old[1]::regprocedure);
  end if;
  execute definition;
  execute format('revoke all on routine %I.%I from public', schema, name);
  execute format('comment on routine %I.%I is %L', schema, name, source);
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
Errors: no such schema (911), the name is taken (2714), there is nothing to alter (208).$$;


create or replace function tsql.drop_routine(kind text, name text, routines oid[], if_exists boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
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
  execute format('drop routine %s', routines[1]::regprocedure);
  notify ringlog_catalogue;
end
$$;

comment on function tsql.drop_routine(text, text, oid[], boolean) is
$$Drops the procedure or function that a name was found to mean. Errors: none or several of this name (3701).$$;


create or replace function tsql.drop_procedure(database text, schema text, name text, if_exists boolean)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select tsql.drop_routine('procedure', name, array(
    -- what is found everywhere is dropped only where it is
    select p.oid
    from tsql.procedures_named(database, schema, name) as named
    join pg_proc p on p.oid = named.oid
    join pg_namespace n on n.oid = p.pronamespace
    where n.oid = pg_my_temp_schema() or lower(n.nspname) = lower(coalesce(nullif(schema, ''), database))
  ), if_exists)
$$;

comment on function tsql.drop_procedure(text, text, text, boolean) is
$$Drops the procedure that a name means in a database. Runs with the caller's rights. Errors: none or several of
this name (3701).$$;


-- Tables

create or replace function tsql.drop_relation(kind text, schema text, name text, if_exists boolean)
returns void
language plpgsql
as $$
declare
  found regclass := (
    select c.oid from pg_catalog.pg_class c
    where c.relname = name
      and c.relkind = any (case kind when 'view' then '{v,m}' else '{r,p,f}' end::"char"[])
      and c.relnamespace = case schema when 'pg_temp' then pg_catalog.pg_my_temp_schema() else (
        select n.oid from pg_catalog.pg_namespace n where n.nspname = schema
      ) end
      and pg_catalog.pg_has_role(c.relowner, 'usage')
  );
begin
  if found is not null then
    execute format('drop %s %s', kind, found);
  elsif not if_exists then
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
  end if;
end
$$;

comment on function tsql.drop_relation(text, text, text, boolean) is
$$Drops a table or view of one schema (pg_temp: a temporary table), with the caller's rights. Errors: it is not there
or another's (3701).$$;


-- Calls

create or replace function tsql.argument(value numeric, low numeric, high numeric, source text, target text)
returns numeric
language plpgsql
immutable
strict
as $$
begin
  if value not between low and high then
    perform tsql.fail(8114, format('Error converting data type %s to %s.', source, target));
  end if;
  return value;
end
$$;

comment on function tsql.argument(numeric, numeric, numeric, text, text) is
$$A number as an argument of a parameter whose type has a range of its own; error 8114 beyond it.$$;


create or replace function tsql.converted(value text, source text, target oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- `value` is an expression, the text that a value of type `source` has given
  select case
    when converter is null then format('%s::%s::%s', value, source, target::regtype)
    else format('(tsql.%s(%s::%s%s))::%s', converter, value, source,
      case converter when 'to_varbinary' then ', null' else '' end, target::regtype)
  end
  from (
    select case (select case t.typtype when 'd' then t.typbasetype else t.oid end from pg_type t where t.oid = target)
      when 'boolean'::regtype then 'to_bit'
      when 'smallint'::regtype then 'to_smallint'
      when 'integer'::regtype then 'to_int'
      when 'bigint'::regtype then 'to_bigint'
      when 'numeric'::regtype then 'to_numeric'
      when 'real'::regtype then 'to_real'
      when 'double precision'::regtype then 'to_float'
      when 'timestamp'::regtype then 'to_datetime2'
      when 'timestamptz'::regtype then 'to_datetime2'
      when 'date'::regtype then 'to_date'
      when 'time'::regtype then 'to_time'
      when 'varchar'::regtype then 'text_of'
      when 'text'::regtype then 'text_of'
      when 'character'::regtype then 'text_of'
      when 'uuid'::regtype then 'to_guid'
      when 'bytea'::regtype then 'to_varbinary'
    end as converter
  ) as known
$$;

comment on function tsql.converted(text, text, oid) is
$$An expression that turns the text of a value of one type into another type, as T-SQL hands it to a parameter.$$;


create or replace function tsql.execute(
  database text, schema text, procedure text, names text[], asked boolean[], "values" text[], types text[]
)
returns tsql.call_result
language plpgsql
as $$
declare
  called pg_catalog.pg_proc;
  found_ oid[] := array(select p.oid from tsql.procedures_named(database, schema, procedure) as p);
  one record;
  written text[] := '{}';
  taken integer[] := '{}';
  formal text[] := array_fill(null::text, array[cardinality(names)]);
  output_names text[] := formal;
  outputs integer := 0;
  has_status boolean := false;
  sends_rows boolean;
  call text;
  gave record;
  result jsonb := '{}';
  rows_ refcursor;
  answer tsql.call_result;
begin
  if found_ = '{}' then
    perform tsql.raise(2812, 16, 62, format('Could not find stored procedure ''%s''.', procedure));
  elsif cardinality(found_) > 1 then
    perform tsql.raise(2812, 16, 62, format('''%s'' is not one procedure but several.', procedure));
  end if;
  select p.* into called from pg_catalog.pg_proc p where p.oid = found_[1];

  -- an argument that is a row is as many parameters as the row has columns
  for one in
    with argument as (
      select a.place, coalesce(called.proargnames[a.place], '') as name,
        coalesce(called.proargmodes[a.place], 'i') as mode, a.type
      from unnest(coalesce(called.proallargtypes, called.proargtypes::oid[])) with ordinality as a (type, place)
    ),
    parameter as (
      select argument.place, coalesce(field.attname, ltrim(argument.name, '@')) as name,
        coalesce(field.atttypid, argument.type) as type, field.attnum as field,
        row_number() over (order by argument.place, field.attnum) as number
      from argument
      left join pg_catalog.pg_type t on t.oid = argument.type and t.typtype = 'c' and argument.mode = 'i'
      left join pg_catalog.pg_attribute field
        on field.attrelid = t.typrelid and field.attnum > 0 and not field.attisdropped
      where argument.mode in ('i', 'b', 'o') and (argument.mode, argument.name) <> ('o', 'return_status')
    ),
    given as (
      select sent.name, sent.type, sent.place
      from unnest(names, types) with ordinality as sent (name, type, place)
    ),
    filled as (
      select parameter.place,
        array_agg(given.place order by parameter.number) filter (where given.place is not null) as sources,
        array_agg(
          case when given.place is null then 'null'
            else tsql.converted(format('$1[%s]', given.place), given.type, parameter.type) end
          order by parameter.number) as "values",
        bool_or(parameter.field is not null) as is_row
      from parameter
      left join given on case given.name when '' then given.place = parameter.number
        else lower(ltrim(given.name, '@')) = lower(parameter.name) end
      group by parameter.place
    )
    select argument.*, filled.sources, filled."values", filled.is_row,
      count(*) filter (where argument.mode in ('i', 'b')) over (order by argument.place) as inputs
    from argument
    left join filled on filled.place = argument.place
    order by argument.place
  loop
    if one.mode in ('b', 'o') then
      outputs := outputs + 1;
      has_status := has_status or (one.mode, one.name) = ('o', 'return_status');
    end if;
    if one.mode not in ('i', 'b', 'o') then
      continue;
    end if;
    taken := taken || one.sources::integer[];
    if one.sources is not null then
      formal[one.sources[1]] := ltrim(one.name, '@');
    end if;
    if one.sources is not null and one.mode in ('b', 'o') then
      output_names[one.sources[1]] := one.name;
    end if;
    if one.mode = 'o' then
      if called.prokind = 'p' then
        written := written || format('%I => null', one.name);
      end if;
    elsif one.sources is not null then
      written := written || (
        case when one.name = '' then '' else format('%I => ', one.name) end
        || case when one.is_row
          then format('row(%s)::%s', array_to_string(one."values", ', '), one.type::regtype)
          else one."values"[1] end);
    elsif one.inputs <= called.pronargs - called.pronargdefaults then
      perform tsql.raise(201, 16, 4, format(
        'Procedure or function ''%s'' expects parameter ''@%s'', which was not supplied.',
        called.proname, ltrim(one.name, '@')));
    end if;
  end loop;
  for place in 1 .. cardinality(names) loop
    if not place = any (taken) then
      if names[place] = '' then
        perform tsql.raise(8144, 16, 2, format(
          'Procedure or function %s has too many arguments specified.', called.proname));
      end if;
      perform tsql.raise(8145, 16, 2, format(
        '%s is not a parameter for procedure %s.', names[place], called.proname));
    elsif asked[place] and output_names[place] is null then
      perform tsql.raise(8162, 16, 2, format(
        'The formal parameter ''@%s'' was not declared as an OUTPUT parameter, but the actual parameter passed in '
        'requested output.', formal[place]));
    end if;
  end loop;
  if cardinality(taken) > cardinality(names)
    or (select count(*) <> count(distinct n) from unnest(taken) as n)
    or (select count(*) <> count(distinct n) from unnest(output_names) as n where n is not null) then
    perform tsql.raise(8143, 16, 1, format('A parameter of %s was supplied multiple times.', called.proname));
  end if;

  call := format('%s(%s)', called.oid::regproc, array_to_string(written, ', '));
  sends_rows := called.proretset or outputs = 0 and called.prokind = 'f'
    and called.prorettype not in ('smallint'::regtype, 'integer'::regtype, 'void'::regtype);
  perform set_config('tsql.error', '0', true), set_config('tsql.rowcount', '', true);
  if sends_rows then
    open rows_ for execute 'select * from ' || call using "values";
    raise notice using errcode = '01R01', message = rows_::text;
  elsif called.prokind = 'p' and outputs = 0 then
    execute 'call ' || call using "values";
  else
    execute case
      when called.prokind = 'p' then 'call ' || call
      when outputs > 0 then 'select * from ' || call
      else 'select ' || call || ' as return_status'
    end into gave using "values";
    result := to_jsonb(gave);
    has_status := has_status or outputs = 0;
  end if;
  answer.status := case when has_status then coalesce(nullif(result ->> 'return_status', '')::integer, 0) else 0 end;
  answer.outputs := array(
    select case when asked[output.place] then result ->> output.name end
    from unnest(output_names) with ordinality as output (name, place)
    order by output.place
  );
  answer.error := coalesce(nullif(current_setting('tsql.error', true), '')::integer, 0);
  answer.rows := nullif(current_setting('tsql.rowcount', true), '')::integer;
  return answer;
end
$$;

comment on function tsql.execute(text, text, text, text[], boolean[], text[], text[]) is
$$EXECUTE in a compiled procedure: calls what a name means in a database. names ('' for an argument given by its
place), asked (OUTPUT), values and types (PostgreSQL's) are those of the arguments. A result set is announced by the
notice 01R01. The call has the rights of the procedure that calls.
Errors: no such procedure, or several (2812), a parameter missing (201), unknown (8145), given twice (8143), too
many (8144), no output (8162).$$;
