-- Made from gateway/tsql/src/facts/conversions.rs, where the chart stands: UPDATE_CASES=1 cargo test -p tsql --test
-- facts writes this file anew.

-- a row of the chart for each class, with a letter for each class of the target: i converts by itself, x never
create or replace function tsql.assignment_error(source text, target text, sybase boolean) returns integer
language sql immutable parallel safe
return case substr(case source
  when 'bit' then case when sybase then 'iiiiixixxvxxxxi' else 'iiiiixixxixxxxi' end
  when 'int' then case when sybase then 'iiiiixixxvxxxxi' else 'iiiiixixxixxxxi' end
  when 'numeric' then case when sybase then 'iiiiixixxvxxxxi' else 'iiiiixixxixxxxi' end
  when 'float' then case when sybase then 'iiiiixixxvxxxxi' else 'iiiiixixxixxxxi' end
  when 'varchar' then case when sybase then 'iiiiiiiiiiiiiii' else 'iiiiiieiiiiiiii' end
  when 'text' then case when sybase then 'xxxxiixxxxxxxix' else 'xxxxiixxxxxxxix' end
  when 'varbinary' then case when sybase then 'iiixixiiiveeeii' else 'iiixixiiiieeeii' end
  when 'image' then case when sybase then 'xxxxxxiixxxxxxx' else 'xxxxxxiixxxxxxx' end
  when 'uniqueidentifier' then case when sybase then 'xxxxixixixxxxxi' else 'xxxxixixixxxxxi' end
  when 'datetime' then case when sybase then 'vvvvixixxiiiixi' else 'eeeeixexxiiiixi' end
  when 'date' then case when sybase then 'xxxxixixxiixixi' else 'xxxxixexxiixixi' end
  when 'time' then case when sybase then 'xxxxixixxixiixi' else 'xxxxixexxixiixi' end
  when 'datetime2' then case when sybase then 'xxxxixixxiiiixi' else 'xxxxixexxiiiixi' end
  when 'xml' then case when sybase then 'xxxxexexxxxxxix' else 'xxxxexexxxxxxix' end
  when 'sql_variant' then case when sybase then 'eeeeexexeeeeexi' else 'eeeeexexeeeeexi' end
  end, array_position('{bit,int,numeric,float,varchar,text,varbinary,image,uniqueidentifier,datetime,date,time,datetime2,xml,sql_variant}'::text[], target), 1)
  when 'x' then 206 when 'e' then 257 when 'v' then 257 end;
comment on function tsql.assignment_error(text, text, boolean) is
'The error of a value of one class of types that is assigned to another, in SQL Server or in ASE; null where it '
'converts by itself.';

create or replace function tsql.fail_assignment(number integer, source text, target text) returns text
language plpgsql immutable
as $$
begin
  perform tsql.fail(number, format(case number when 206 then 'Operand type clash: %s is incompatible with %s' else 'Implicit conversion from data type %s to %s is not allowed. Use the CONVERT function to run this query.' end,
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
  ('= <> < <= > >= + - * / %', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('= <> < <= > >= + - * / %', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('= <> < <= > >= + - * / %', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('= <> < <= > >= + - * / %', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('= <> < <= > >= + - * / %', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('= <> < <= > >= + - * / %', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('= <> < <= > >= + - * / %', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('= <> < <= > >= + - * / %', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('= <> < <= > >= + - * / %', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('= <> < <= > >= + - * / %', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('= <> < <= > >= + - * / %', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('= <> < <= > >= + - * / %', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('+ - * / %', 'date', 'date', 8117, 'Operand data type date is invalid for %s operator.'),
  ('= <> < <= > >= + - * / %', 'date', 'time', 402, 'The data types date and time are incompatible in the %s operator.'),
  ('+ - * / %', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the %s operator.'),
  ('+ - * / %', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the %s operator.'),
  ('= <> < <= > >= + - * / %', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('= <> < <= > >= + - * / %', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('= <> < <= > >= + - * / %', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('= <> < <= > >= + - * / %', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('= <> < <= > >= + - * / %', 'time', 'date', 402, 'The data types time and date are incompatible in the %s operator.'),
  ('+ - * / %', 'time', 'time', 8117, 'Operand data type time is invalid for %s operator.'),
  ('= <> < <= > >= + - * / %', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the %s operator.'),
  ('= <> < <= > >= + - * / %', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the %s operator.'),
  ('+ - * / %', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the %s operator.'),
  ('= <> < <= > >= + - * / %', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the %s operator.'),
  ('+ - * / %', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the %s operator.'),
  ('= <> < <= > >= + - * / %', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the %s operator.')
) as pairs (operators, l, r, number, message)
join (values ('=', 'equal to'), ('<>', 'not equal to'), ('<', 'less than'), ('<=', 'less than or equal to'), ('>', 'greater than'), ('>=', 'greater than or equal to'), ('+', 'add'), ('-', 'subtract'), ('*', 'multiply'), ('/', 'divide'), ('%', 'modulo')) as verbs (plain, verb)
  on verbs.plain = any (string_to_array(pairs.operators, ' '));
end;
comment on function tsql.refused_operators() is
'Operators that SQL Server has none of, by the types of both sides as PostgreSQL has them; their error and its text.';
