-- Made from gateway/tsql/src/facts/conversions.rs, where the chart stands: UPDATE_CASES=1 cargo test -p tsql --test
-- facts writes this file anew.

create or replace function tsql.assignment_error(source text, target text, sybase boolean)
returns integer
language sql
immutable
parallel safe
return case
{branches}  end;

comment on function tsql.assignment_error(text, text, boolean) is
'The error of a value of one class of types that is assigned to another, in SQL Server or in ASE; null where it '
'converts by itself.';

create or replace function tsql.fail_assignment(number integer, source text, target text)
returns text
language plpgsql
immutable
as $$
begin
  perform tsql.fail(number, format(case number when {clash} then '{clashing}' else '{not_by_itself}' end,
    source, target));
  return null;
end
$$;

comment on function tsql.fail_assignment(integer, text, text) is
'Raises an error of tsql.assignment_error.';

create or replace function tsql.refused_operators()
returns table (plain text, l text, r text, number integer, message text)
language sql
immutable
begin atomic
values
{operators};
end;

comment on function tsql.refused_operators() is
'Operators that SQL Server has none of, by the types of both sides as PostgreSQL has them; their error and its text.';
