-- Facts in braces stand in gateway/tsql/src/facts/conversions.rs.

-- a row of the chart for each class, with a letter for each class of the target: i converts by itself, x never
create or replace function tsql.assignment_error(source text, target text, sybase boolean) returns integer
language sql immutable parallel safe
return case substr(case source
{facts.chart}  end, array_position('{{facts.classes}}'::text[], target), 1)
  when 'x' then {facts.clash} when 'e' then {facts.by_convert} when 'v' then {facts.by_convert} end;
comment on function tsql.assignment_error(text, text, boolean) is
'The error of a value of one class of types that is assigned to another, in SQL Server or in ASE; null where it '
'converts by itself.';

create or replace function tsql.fail_assignment(number integer, source text, target text) returns text
language plpgsql immutable
as $$
begin
  perform tsql.fail(number, format(
    case number when {facts.clash} then '{facts.clashing}' else '{facts.not_by_itself}' end,
    source, target));
  return null;
end
$$;
comment on function tsql.fail_assignment(integer, text, text) is 'Raises an error of tsql.assignment_error.';

create or replace function tsql.refused_operators()
returns table (plain text, l text, r text, number integer, message text)
language sql immutable
begin atomic
select verbs.plain, pairs.l, pairs.r, pairs.number, format(pairs.message, verbs.verb)
from (values
{facts.operators}
) as pairs (operators, l, r, number, message)
join (values {facts.verbs}) as verbs (plain, verb)
  on verbs.plain = any (string_to_array(pairs.operators, ' '));
end;
comment on function tsql.refused_operators() is
'Operators that SQL Server has none of, by the types of both sides as PostgreSQL has them; their error and its text.';
