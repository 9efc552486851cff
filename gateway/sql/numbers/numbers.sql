-- Numbers: SQL Server, "Mathematical functions". The result has the argument's kind.

create or replace function tsql.quotient(dividend numeric, divisor numeric, scale integer) returns numeric
language sql immutable strict parallel safe
return pg_catalog.round(div(dividend * power(10::numeric, scale), divisor) * power(10::numeric, -scale), scale);
comment on function tsql.quotient(numeric, numeric, integer) is 'A quotient with the given number of decimals, truncated.';

create or replace function tsql.truncated(value numeric, scale integer) returns numeric
language sql immutable strict parallel safe return pg_catalog.trunc(value, scale);
create or replace function tsql.truncated(value anyelement, scale integer) returns anyelement
language sql immutable strict parallel safe as $$ select value $$;
comment on function tsql.truncated(numeric, integer) is 'A decimal converted to another scale, truncated as in ASE.';
comment on function tsql.truncated(anyelement, integer) is 'Values of other types are unchanged.';

create or replace function tsql.lost_scale(value numeric, "precision" integer, scale integer, target text) returns numeric
language plpgsql immutable parallel safe
as $$
begin
  -- a number outside the range is an overflow
  if abs(value) >= power(10::numeric, "precision" - scale) then
    return value;
  elsif current_setting('tsql.numeric_truncation', true) = 'off' then
    return trunc(value, scale);
  end if;
  perform tsql.fail(251, format('Scale error during implicit conversion of NUMERIC value ''%s'' to a %s field.', value, target));
  return null;
end
$$;
comment on function tsql.lost_scale(numeric, integer, integer, text) is
  'Error 241 of ASE, here 251; with set arithabort numeric_truncation off the truncated number.';

create or replace function tsql.scaled(value numeric, "precision" integer, scale integer, target text) returns numeric
language sql immutable parallel safe
return case
  when pg_catalog.trunc(value, scale) <> value then tsql.lost_scale(value, "precision", scale, target)
  else value
end;
create or replace function tsql.scaled(value anyelement, "precision" integer, scale integer, target text) returns anyelement
language sql immutable parallel safe as $$ select value $$;
comment on function tsql.scaled(numeric, integer, integer, text) is
  'A decimal after ASE''s implicit conversion to another precision and scale.';
comment on function tsql.scaled(anyelement, integer, integer, text) is 'Values of other types are unchanged.';

-- otherwise PostgreSQL cannot choose between numeric and anyelement
call tsql.make_each('{smallint,integer,bigint}', $$
create or replace function tsql.truncated(value %1$s, scale integer) returns %1$s
language sql immutable strict parallel safe return value;
create or replace function tsql.scaled(value %1$s, "precision" integer, scale integer, target text) returns %1$s
language sql immutable parallel safe return value$$);

-- volatile, because PostgreSQL evaluates an immutable function without arguments while planning, even if it is not
-- needed
create or replace function tsql.no_domain() returns double precision
language plpgsql volatile
as $$
begin
  perform tsql.fail(3623, 'An invalid floating point operation occurred.');
  return null;
end
$$;

create or replace function tsql.power(value double precision, exponent double precision) returns double precision
language sql immutable strict parallel safe
return case when value < 0 and exponent <> pg_catalog.trunc(exponent) then tsql.no_domain()
  -- a result below the smallest float is an error in PostgreSQL
  when value <> 0 and exponent * pg_catalog.ln(pg_catalog.abs(value)) < -745.2 then 0
  else pg_catalog.power(value, exponent) end;

call tsql.make_each('{integer,bigint,numeric,real,double precision}', $$
create or replace function tsql.abs(value %1$s) returns %1$s
language sql immutable strict parallel safe return pg_catalog.abs(value)$$);
call tsql.make_each('{{integer,int},{bigint,bigint}}', $$
call tsql.make_functions('immutable strict parallel safe', array[
  ['ceiling(value %1$s)', '%1$s', 'value'],
  ['floor(value %1$s)', '%1$s', 'value'],
  ['sign(value %1$s)', '%1$s', 'pg_catalog.sign(value::numeric)::%1$s'],
  ['round(value %1$s, places integer, cut boolean)', '%1$s', 'case when cut then pg_catalog.trunc(value::numeric, places)
    else pg_catalog.round(value::numeric, places) end::%1$s'],
  ['power(value %1$s, exponent double precision)', '%1$s', 'tsql.to_%2$s(tsql.power(value::double precision, exponent))'],
  ['degrees(value %1$s)', '%1$s', 'tsql.whole(pg_catalog.degrees(value::double precision))::%1$s'],
  ['radians(value %1$s)', '%1$s', 'tsql.whole(pg_catalog.radians(value::double precision))::%1$s']])$$);
call tsql.make_functions('immutable strict parallel safe', array[
  ['ceiling(value numeric)', 'numeric', 'pg_catalog.ceiling(value)'],
  ['floor(value numeric)', 'numeric', 'pg_catalog.floor(value)'],
  ['sign(value numeric)', 'numeric', 'pg_catalog.round(pg_catalog.sign(value), scale(value))'],
  ['round(value numeric, places integer, cut boolean)', 'numeric', 'pg_catalog.round(
    case when cut then pg_catalog.trunc(value, places) else pg_catalog.round(value, places) end, scale(value))'],
  ['power(value numeric, exponent double precision)', 'numeric',
    'pg_catalog.round(tsql.power(value::double precision, exponent)::text::numeric, scale(value))'],
  ['degrees(value numeric)', 'double precision', 'pg_catalog.degrees(value::double precision)'],
  ['radians(value numeric)', 'double precision', 'pg_catalog.radians(value::double precision)']]);

call tsql.make_each('{ceiling,floor,sign,degrees,radians,sin,cos,tan,cot,atan}', $$
create or replace function tsql.%1$s(value double precision) returns double precision
language sql immutable strict parallel safe return pg_catalog.%1$s(value)$$);
call tsql.make_each(array[
  ['round(value double precision, places integer, cut boolean)', 'case when cut then pg_catalog.trunc(value::text::numeric, places)
    else pg_catalog.round(value::text::numeric, places) end::double precision'],
  ['square(value double precision)', 'value * value'],
  ['sqrt(value double precision)', 'case when value < 0 then tsql.no_domain() else pg_catalog.sqrt(value) end'],
  ['log(value double precision)', 'case when value <= 0 then tsql.no_domain() else pg_catalog.ln(value) end'],
  ['log(value double precision, base double precision)', 'case when value <= 0 or base <= 0 or base = 1 then tsql.no_domain()
    else pg_catalog.ln(value) / pg_catalog.ln(base) end'],
  ['log10(value double precision)', 'case when value <= 0 then tsql.no_domain() else pg_catalog.log(value) end'],
  ['acos(value double precision)', 'case when pg_catalog.abs(value) > 1 then tsql.no_domain() else pg_catalog.acos(value) end'],
  ['asin(value double precision)', 'case when pg_catalog.abs(value) > 1 then tsql.no_domain() else pg_catalog.asin(value) end'],
  ['atan2(y double precision, x double precision)', 'pg_catalog.atan2(y, x)'],
  ['exp(value double precision)', 'case when value < -745.13 then 0 else pg_catalog.exp(value) end']
], 'create or replace function tsql.%s returns double precision language sql immutable strict parallel safe return %s');

create or replace function tsql.top(number bigint) returns bigint
language plpgsql immutable parallel safe
as $$
begin
  if number is null then
    perform tsql.fail(1014, 'A TOP or FETCH clause contains an invalid value.');
  elsif number < 0 then
    perform tsql.fail(127, 'A TOP N or FETCH rowcount value may not be negative.');
  end if;
  return number;
end
$$;
create or replace function tsql.rows_of(
  number bigint, fewest bigint, no_integer integer, no_integer_words text, too_small integer, too_small_words text
) returns bigint
language plpgsql immutable parallel safe
as $$
begin
  if number is null then
    perform tsql.raise(no_integer, 16, 1, no_integer_words);
  elsif number < fewest then
    perform tsql.raise(too_small, 16, 1, too_small_words);
  end if;
  return number;
end
$$;
comment on function tsql.rows_of(bigint, bigint, integer, text, integer, text) is
  'The number of rows of OFFSET or FETCH, if it is not null and large enough; otherwise the given error.';
create or replace function tsql.top_percent(percent double precision, number bigint) returns bigint
language plpgsql immutable parallel safe
as $$
begin
  if percent is null then
    perform tsql.fail(1014, 'A TOP or FETCH clause contains an invalid value.');
  elsif percent not between 0 and 100 then
    perform tsql.fail(1031, 'Percent values must be between 0 and 100.');
  end if;
  return ceil(percent::numeric * number / 100);
end
$$;

create or replace function tsql.deeper(depth integer, most integer) returns integer
language plpgsql immutable parallel safe
as $$
begin
  if depth >= most then
    perform tsql.fail(530, format('The statement terminated. The maximum recursion %s has been exhausted before '
      'statement completion.', most));
  end if;
  return depth + 1;
end
$$;
create or replace function tsql.deeper(depth integer) returns integer
language sql immutable parallel safe return tsql.deeper(depth, 100);
comment on function tsql.deeper(integer, integer) is 'The recursion level of a row of a recursive query, plus one.';

-- smallint and tinyint become int
call tsql.make_each(array[['abs', '', ''], ['ceiling', '', ''], ['floor', '', ''], ['sign', '', ''], ['degrees', '', ''],
  ['radians', '', ''], ['round', ', places integer, cut boolean', ', places, cut'],
  ['power', ', exponent double precision', ', exponent']
], $$create or replace function tsql.%1$s(value smallint%2$s) returns integer
language sql immutable strict parallel safe return tsql.%1$s(value::integer%3$s)$$);
-- the result for money is money, whose text has two decimals
call tsql.make_each('{tsql.money,tsql.smallmoney}', $$
call tsql.make_each(array[['abs', '', '', '%1$s'], ['ceiling', '', '', '%1$s'], ['floor', '', '', '%1$s'],
  ['sign', '', '', 'tsql.money'], ['round', ', places integer, cut boolean', ', places, cut', 'tsql.money'],
  ['power', ', exponent double precision', ', exponent', 'tsql.money']
], 'create or replace function tsql.%%1$s(value %1$s%%2$s) returns %%4$s language sql immutable strict parallel safe'
  ' return tsql.%%1$s(value::numeric%%3$s)::%%4$s')$$);

-- ~ ("Bitwise NOT"): of the eight bits of a tinyint
call tsql.make_each(array[['tsql.tinyint', 'smallint', '(255 - value::smallint)::smallint'], ['smallint', 'smallint', '~ value'],
  ['integer', 'integer', '~ value'], ['bigint', 'bigint', '~ value'], ['boolean', 'boolean', 'not value']
], 'create or replace function tsql.complement(value %s) returns %s language sql immutable strict parallel safe return %s');

create or replace function tsql.as_tinyint(value smallint) returns smallint
language plpgsql immutable strict parallel safe
as $$
begin
  if value not between 0 and 255 then
    perform tsql.fail(8115, 'Arithmetic overflow error converting expression to data type tinyint.');
  end if;
  return value;
end
$$;
comment on function tsql.as_tinyint(smallint) is 'The result of an operator between tinyints.';
