-- Aggregates: the sum and the average of whole numbers are whole numbers (SQL Server, "SUM" and "AVG").

create or replace function tsql.narrow_sum(total bigint) returns integer
language sql immutable strict parallel safe return tsql.to_int(total);
create or replace function tsql.whole_average(state bigint[]) returns integer
language sql immutable strict parallel safe
return case when state[1] > 0 then (tsql.to_int(state[2]) / state[1])::integer end;
comment on function tsql.whole_average(bigint[]) is
  'The average; error 8115 if the sum exceeds the range of the average''s type ("AVG (Transact-SQL)").';

call tsql.make_each('{{smallint,int2},{integer,int4}}', $$
create or replace aggregate tsql.sum(%1$s) (
  sfunc = %2$s_sum, stype = bigint, finalfunc = tsql.narrow_sum, parallel = safe);
create or replace aggregate tsql.avg(%1$s) (
  sfunc = %2$s_avg_accum, stype = bigint[], finalfunc = tsql.whole_average, initcond = '{0,0}', parallel = safe)$$);

create or replace function tsql.count_and_add(state numeric[], value numeric) returns numeric[]
language sql immutable parallel safe
return case when value is null then state else array[state[1] + 1, state[2] + value] end;
call tsql.make_each('{bigint,tsql.money,tsql.smallmoney}', $$
create or replace function tsql.count_and_add(state numeric[], value %s) returns numeric[]
language sql immutable parallel safe return tsql.count_and_add(state, value::numeric)$$);
create or replace function tsql.total(state numeric[]) returns numeric
language sql immutable parallel safe return case when state[1] > 0 then state[2] end;
create or replace function tsql.big_total(state numeric[]) returns bigint
language sql immutable parallel safe return tsql.to_bigint(tsql.total(state));
create or replace function tsql.big_average(state numeric[]) returns bigint
language sql immutable parallel safe return case when state[1] > 0 then div(tsql.to_bigint(state[2])::numeric, state[1])::bigint end;
create or replace function tsql.decimal_average(state numeric[]) returns numeric
language sql immutable parallel safe
return case when state[1] > 0 then tsql.quotient(state[2], state[1], greatest(6, scale(state[2]))) end;
create or replace function tsql.money_total(state numeric[]) returns tsql.money
language sql immutable parallel safe return tsql.to_money(tsql.total(state));
create or replace function tsql.money_average(state numeric[]) returns tsql.money
language sql immutable parallel safe
return case when state[1] > 0 then tsql.to_money(tsql.quotient(state[2], state[1], 4)) end;

call tsql.make_each('{{bigint,big_total,big_average},{numeric,total,decimal_average},{tsql.money,money_total,money_average},
  {tsql.smallmoney,money_total,money_average}}', $$
create or replace aggregate tsql.sum(%1$s) (
  sfunc = tsql.count_and_add, stype = numeric[], finalfunc = tsql.%2$s, initcond = '{0,0}', parallel = safe);
create or replace aggregate tsql.avg(%1$s) (
  sfunc = tsql.count_and_add, stype = numeric[], finalfunc = tsql.%3$s, initcond = '{0,0}', parallel = safe)$$);

-- sums of reals are computed as floats
create or replace function tsql.add_real(state double precision, value real) returns double precision
language sql immutable parallel safe return case when value is null then state else coalesce(state, 0) + value end;
create or replace function tsql.average_real(state double precision[], value real) returns double precision[]
language sql immutable strict parallel safe return array[state[1] + 1, state[2] + value];
create or replace function tsql.float_average(state double precision[]) returns double precision
language sql immutable strict parallel safe return case when state[1] > 0 then state[2] / state[1] end;
create or replace aggregate tsql.sum(real) (sfunc = tsql.add_real, stype = double precision, parallel = safe);
create or replace aggregate tsql.sum(double precision) (sfunc = float8pl, stype = double precision, parallel = safe);
create or replace aggregate tsql.avg(real) (
  sfunc = tsql.average_real, stype = double precision[], finalfunc = tsql.float_average, initcond = '{0,0}',
  parallel = safe);
create or replace aggregate tsql.avg(double precision) (
  sfunc = float8_accum, stype = double precision[], finalfunc = float8_avg, initcond = '{0,0,0}', parallel = safe);

-- select @v = coalesce(@v + separator, first) + part from … order by …
create or replace function tsql.grown_by(part text) returns text
language sql immutable parallel safe return part;
create or replace function tsql.grown_by(part character) returns text
language sql immutable parallel safe return tsql.padded(part);
create or replace function tsql.grown(state text[], start text, separator text, first text, part text) returns text[]
language sql immutable
return array[coalesce(case when state is null then start else state[1] end || separator, first) || part];
comment on function tsql.grown(text[], text, text, text, text) is 'The text with another part; start is the value before the first row.';
create or replace function tsql.grown_text(state text[]) returns text
language sql immutable return state[1];
create or replace aggregate tsql.grow(start text, separator text, first text, part text) (
  sfunc = tsql.grown, stype = text[], finalfunc = tsql.grown_text);
