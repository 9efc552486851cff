-- Functions by which procedures compiled from T-SQL raise and catch errors, with T-SQL's numbers.

do $$
begin
  if to_regtype('tsql.error') is null then
    create type tsql.error as (
      number integer, severity integer, state integer, message text, line integer, procedure text);
    comment on type tsql.error is 'An error or message of T-SQL.';
  end if;
end
$$;

create or replace function tsql.raise(
  number integer, severity integer, state integer, message text, line integer default 0, procedure text default ''
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if severity > 19 or (severity > 10 and current_setting('tsql.try', true) in ('on', 'told', 'returned')) then
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

create or replace function tsql.hands_over(sqlstate text, detail text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(current_setting('tsql.try', true) in ('told', 'returned'), false)
    and sqlstate not in ('40001', '40P01')
    and not (sqlstate = 'TS001' and split_part(detail, ' ', 2)::integer > 19)
$$;
comment on function tsql.hands_over(text, text) is
$$Whether the error of a procedure goes to a TRY block around its call by way of its return, which undoes nothing. The setting
tsql.try: `returned` where the caller is compiled and asks for the error (tsql.handed_over), `told` where it is the gateway,
`on` where the error has to be raised. Without a TRY block it is `called` under a compiled caller, and `aborts` under
SET XACT_ABORT ON.$$;

create or replace function tsql.is_refusal(sqlstate text, detail text) returns boolean
language sql immutable
as $$ select sqlstate = 'TS001' and split_part(detail, ' ', 1) in ('102', '3931') $$;
comment on function tsql.is_refusal(text, text) is
$$Whether an error says that a compiled procedure cannot do what its text asks for: the call ends, and nothing of it stays.$$;

create or replace function tsql.goes_on_after(sqlstate text, detail text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select tsql.ends_its_statement(sqlstate, detail) and not tsql.is_refusal(sqlstate, detail)
    and current_setting('tsql.try', true) is distinct from 'aborts'
$$;
comment on function tsql.goes_on_after(text, text) is
$$Whether a procedure goes on after this error of one of its statements.$$;

create or replace function tsql.ends_with_it(sqlstate text, detail text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(current_setting('tsql.try', true), '') in ('', 'off', 'called')
    and tsql.transaction_count() = 0
    and not tsql.is_refusal(sqlstate, detail)
    and sqlstate !~ '^(40|53|57|58|XX)'
    -- the gateway derives T-SQL's error for an unknown function from PostgreSQL's own error
    and sqlstate <> '42883'
    and not (sqlstate = 'TS001' and split_part(detail, ' ', 2)::integer > 19);
end
$$;
comment on function tsql.ends_with_it(text, text) is
$$Whether an error that ends the batch ends a procedure by its return, so that the statements before it stay: outside of a
transaction each was committed on its own. Not a deadlock or a fault of the server, nor what ringlog refuses.$$;

create or replace function tsql.hand_over(error tsql.error) returns void
language sql set search_path = pg_catalog, pg_temp
as $$ select set_config('tsql.handed_over', error::text, true) $$;
comment on function tsql.hand_over(tsql.error) is $$Stores an error for the TRY block around the call.$$;

create or replace function tsql.is_handed_over() returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$ select coalesce(current_setting('tsql.handed_over', true), '') <> '' $$;
comment on function tsql.is_handed_over() is $$Whether a call has ended with an error for the TRY block around it.$$;

create or replace function tsql.handed_over() returns tsql.error
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  error tsql.error := current_setting('tsql.handed_over')::tsql.error;
begin
  perform set_config('tsql.handed_over', '', true);
  return error;
end
$$;
comment on function tsql.handed_over() is $$The error that ended a call, for the CATCH block that handles it.$$;

create or replace function tsql.tell_handed_over() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  error tsql.error;
begin
  if tsql.is_handed_over() and coalesce(current_setting('tsql.try', true), '') not in ('on', 'returned', 'called') then
    error := tsql.handed_over();
    raise notice using errcode = '01R08', message = coalesce(error.message, ''),
      detail = format('%s %s %s %s %s', error.number, error.severity, error.state, coalesce(error.line, 0), error.procedure);
  end if;
end
$$;
comment on function tsql.tell_handed_over() is
$$At the end of a procedure: tells the gateway of the error that has ended it, for its TRY block or as the end of the batch, by
a notice of SQLSTATE 01R08 with the detail of tsql.raise. A compiled caller asks tsql.is_handed_over() instead.$$;

create or replace function tsql.caught(sqlstate text, message text, detail text, line integer, procedure text)
returns tsql.error
language plpgsql stable set search_path = pg_catalog, pg_temp
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
        -- the numbers of tsql.own_state
        when sqlstate = 'S2627' then ' (SQLSTATE 23505)'
        when sqlstate = 'S8672' then ' (SQLSTATE 21000)'
        when sqlstate ~ '^S\d{4,5}$' then ''
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

create or replace function tsql.tell_caught(error tsql.error) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.tell(error.number, error.severity, error.state, error.message, error.line, error.procedure);
  if error.number in (233, 515, 546, 547, 548, 550, 2601, 2627, 8152) then
    perform tsql.tell(3621, 10, 0, 'The statement has been terminated.', error.line, error.procedure);
  end if;
  return error.number;
end
$$;
comment on function tsql.tell_caught(tsql.error) is
$$Sends a caught error, after which the procedure continues. Returns its number.$$;

create or replace function tsql.leave_error(number integer, calls boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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

create or replace function tsql.known(value integer, variable text) returns integer
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null then
    perform tsql.raise(102, 15, 1, format('%s is not known after the call of a procedure that does not use it.', variable));
  end if;
  return value;
end
$$;
comment on function tsql.known(integer, text) is $$The value of @@rowcount, or an error if it is unknown.$$;

create or replace function tsql.missing(procedure text, parameter text, type anyelement) returns anyelement
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.raise(201, 16, 4, format(
    'Procedure or function ''%s'' expects parameter ''%s'', which was not supplied.', procedure, parameter));
  return type;
end
$$;
comment on function tsql.missing(text, text, anyelement) is
$$The default of a parameter that has none and follows one that has: error 201.$$;
