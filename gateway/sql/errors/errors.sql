-- Facts in braces stand in gateway/tsql/src/facts/errors.rs.

create or replace function tsql.error_number(sqlstate text) returns integer
language sql immutable
as $$
  select case
    when sqlstate ~ '^S\d{4,5}$' then substr(sqlstate, 2)::integer
{facts.numbers}    else {facts.no_number}
  end
$$;
comment on function tsql.error_number(text) is
$$The number legacy code knows a SQLSTATE by; {facts.no_number} where it has none. S0245 is T-SQL's own 245.$$;

create or replace function tsql.message_forms()
returns table (state text, before text, after text, own text, words text)
language sql immutable
begin atomic
values
{facts.forms};
end;
comment on function tsql.message_forms() is
$$PostgreSQL's errors that have a number or words of T-SQL's: the SQLSTATE, what is before and after the name in the text, the
SQLSTATE of T-SQL's number, T-SQL's words, in which % is the name and ^ its last part.$$;

create or replace function tsql.forms_of(sqlstate text, message text)
returns table (index bigint, own text, words text, name text)
language sql immutable
as $$
  select form.index, form.own, form.words, case form.after when '' then '' else split_part(rest, form.after, 1) end
  from tsql.message_forms() with ordinality as form (state, before, after, own, words, index)
  cross join lateral substr(message, length(form.before) + 1) as rest
  where (form.state = sqlstate or sqlstate ~ '^S\d{4,5}$')
    and starts_with(message, form.before) and strpos(rest, form.after) > 0
    and (form.before <> '{facts.function}' or strpos(split_part(message, '(', 1), '.') = 0)
$$;
comment on function tsql.forms_of(text, text) is
$$The forms that an error's text has, of which the first applies, and the name in it. A SQLSTATE of T-SQL's number has those
of any.$$;

create or replace function tsql.own_state(sqlstate text, message text, table_ text, constraint_ text, sybase boolean)
returns text
language sql immutable
as $$
  select coalesce(
    case when sqlstate !~ '^S' then
      (select own from tsql.forms_of(sqlstate, message) where own is not null order by index limit 1) end,
    case
{facts.range_states}      when not sybase and sqlstate = '{facts.duplicate}' and constraint_ <> ''
          and not starts_with(constraint_, table_ || '.')
        then 'S{facts.of_constraint}'
      else sqlstate
    end)
$$;
comment on function tsql.own_state(text, text, text, text, boolean) is
$$A SQLSTATE, or that of a number T-SQL has for an error of this text or constraint: a row that MERGE meets twice, an
operator that there is none of, a value beyond a type, and, unless in ASE, a row that is there already by a key or a
UNIQUE constraint. Indexes that T-SQL has made are named by their table first.$$;

create or replace function tsql.own_message(sqlstate text, message text) returns text
language sql immutable
as $$
  select case when strpos(words, '^') > 0 then replace(words, '^', trim(both '"' from regexp_replace(name, '^.*\.', '')))
    else replace(words, '%', name) end
  from tsql.forms_of(sqlstate, message)
  where words is not null
  order by index
  limit 1
$$;
comment on function tsql.own_message(text, text) is
$$What T-SQL says where PostgreSQL has said this; null where it has no words of its own. sqlstate: also that of
tsql.own_state.$$;

create or replace function tsql.number_in_ase(number integer) returns integer
language sql immutable
as $$
  select case number
{facts.in_ase}    else number
  end
$$;
comment on function tsql.number_in_ase(integer) is $$ASE's number for an error of T-SQL's own.$$;

create or replace function tsql.error_severity(number integer) returns integer
language sql immutable
as $$
  select case number
{facts.severities}    else {facts.severity}
  end
$$;
comment on function tsql.error_severity(integer) is 'The severity of an error that PostgreSQL has raised.';

create or replace function tsql.ends_more(number integer) returns boolean
language sql immutable
as $$
  select {facts.ranges}
$$;
comment on function tsql.ends_more(integer) is $$Whether an error of T-SQL's own ends more than its statement.$$;

create or replace function tsql.ends_its_transaction(number integer) returns boolean
language sql immutable
as $$
  select {facts.dooming}
$$;
comment on function tsql.ends_its_transaction(integer) is
'Whether an error would end the transaction outside of a TRY block.';

create or replace function tsql.ends_its_statement(sqlstate text, detail text) returns boolean
language sql immutable
as $$
  select case
    -- THROW ends everything; what is wrong with a call only the call
    when sqlstate = 'TS001' then split_part(detail, ' ', 1)::integer < 50000
      and split_part(detail, ' ', 2)::integer < 20
      and not tsql.ends_its_transaction(split_part(detail, ' ', 1)::integer)
    when sqlstate ~ '^S\d{4,5}$' then not tsql.ends_more(substr(sqlstate, 2)::integer)
    when sqlstate in ({facts.more}) then false
    when sqlstate in ({facts.only}) then true
    else sqlstate not like '42%'
  end
$$;
comment on function tsql.ends_its_statement(text, text) is
$$Whether an error ends its statement only, so that a procedure goes on after it: constraints, duplicate keys,
numbers and texts that do not fit, division by zero, missing rights, errors that a called function raises. Others
(no such object, a text that is no number, a deadlock, THROW) end the batch, in T-SQL as here. detail: of TS001.$$;

create or replace function tsql.is_arithmetic(sqlstate text, message text, table_ text, constraint_ text) returns boolean
language sql stable
as $$
  select tsql.error_number(tsql.own_state(sqlstate, message, table_, constraint_, true)) in ({facts.arithmetic})
    and current_setting('tsql.arith_overflow', true) is distinct from 'off'
$$;
comment on function tsql.is_arithmetic(text, text, text, text) is
$$Whether an error is an overflow, a division by zero or a domain error, which in ASE ends the batch and its transaction
unless set arithabort arith_overflow is off.$$;

create or replace function tsql.ends_its_batch(sqlstate text) returns boolean
language sql immutable
as $$
  select sqlstate in ('40001', '40P01')
    or (sqlstate like '42%' and sqlstate not in ({facts.only}))
$$;
comment on function tsql.ends_its_batch(text) is
$$Whether an error is none for the CATCH block beside it: a deadlock, whose victim is the whole transaction, and
names that are wrong, which T-SQL finds before it runs anything.$$;
