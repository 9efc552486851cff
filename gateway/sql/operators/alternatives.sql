-- ISNULL, COALESCE and CASE: values of two types as alternatives.

-- the first argument that is not null, in the type of the first (isnull) or in the type of higher precedence (coalesce)
do $$
declare
  types constant text[] := array['text', 'boolean', 'smallint', 'integer', 'bigint', 'numeric', 'real',
    'double precision', 'timestamp', 'timestamptz'];
  readers constant text[] := array['text_of', 'to_bit', 'to_smallint', 'to_int', 'to_bigint', 'to_numeric', 'to_real',
    'to_float', 'moment', 'moment'];
  i integer;
  j integer;
  higher integer;
  to_first text;
  l text;
  r text;
begin
  for i in 1 .. 10 loop
    for j in 1 .. 10 loop
      -- a number is converted to a datetime implicitly, a datetime to a number only explicitly
      continue when greatest(i, j) = 10 and least(i, j) between 2 and 8;
      if greatest(i, j) = 9 and least(i, j) between 2 and 8 then
        if i = 9 then
          execute format('create or replace function tsql.isnull(l timestamp, r %s) returns timestamp language sql'
            ' immutable parallel safe return coalesce(l, tsql.to_datetime(r))', types[j]);
        end if;
        execute format('create or replace function tsql.either(l %s, r %s) returns timestamp language sql immutable'
          ' parallel safe return coalesce(%s, %s)', types[i], types[j],
          case i when 9 then 'l' else 'tsql.to_datetime(l)' end, case j when 9 then 'r' else 'tsql.to_datetime(r)' end);
        continue;
      end if;
      to_first := case when i = j then 'r' when i = 10 then 'tsql.instant(tsql.moment(r))'
        when (i, j) = (9, 10) then 'r::timestamp' else format('tsql.%I(r)', readers[i]) end;
      execute format('create or replace function tsql.isnull(l %s, r %s) returns %s language sql %s parallel safe'
        ' return coalesce(l, %s)', types[i], types[j], types[i],
        case when 10 in (i, j) then 'stable' else 'immutable' end, to_first);
      higher := greatest(i, j);
      l := case when i = higher then 'l' when higher = 10 then 'tsql.instant(tsql.moment(l))'
        else format('tsql.%I(l)', readers[higher]) end;
      r := case when j = higher then 'r' when higher = 10 then 'tsql.instant(tsql.moment(r))'
        else format('tsql.%I(r)', readers[higher]) end;
      execute format('create or replace function tsql.either(l %s, r %s) returns %s language sql %s parallel safe'
        ' return coalesce(%s, %s)', types[i], types[j], types[higher],
        case when higher = 10 then 'stable' else 'immutable' end, l, r);
    end loop;
  end loop;
end
$$;
-- a char keeps its trailing blanks
call tsql.make_each(array[['isnull(l bpchar, r bpchar)', 'bpchar', 'l, r'], ['isnull(l bpchar, r text)', 'bpchar', 'l, r::bpchar'],
  ['isnull(l bpchar, r text, length integer)', 'bpchar', 'l, rpad(tsql.within(r, length), coalesce(length, length(r)))::bpchar'],
  ['isnull(l text, r text, length integer)', 'text', 'l, tsql.within(r, length)'], ['either(l bpchar, r bpchar)', 'bpchar', 'l, r'],
  ['either(l bpchar, r text)', 'text', 'tsql.text_of(l), r'], ['either(l text, r bpchar)', 'text', 'l, tsql.text_of(r)']
], 'create or replace function tsql.%s returns %s language sql immutable parallel safe return coalesce(%s)');
create or replace function tsql.isnull(l anyelement, r text, length integer) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, text, integer) is 'ISNULL of a column with a text as its replacement, cut to the column''s length.';
create or replace function tsql.with_blanks(value anyelement) returns anyelement
language sql immutable parallel safe as 'select value';
create or replace function tsql.with_blanks(value text) returns text
language sql immutable parallel safe return value;
create or replace function tsql.with_blanks(value bpchar) returns text
language sql immutable parallel safe return tsql.text_of(value);
comment on function tsql.with_blanks(anyelement) is
  'A char as text with its blanks, which PostgreSQL''s cast would remove; values of other types are unchanged.';
-- A value as the domain of `other`, where PostgreSQL would use the base type: NULL combined with a value, and a whole
-- number combined with money. Only the type of `other` matters.
create or replace function tsql.null_of(other anyelement) returns anyelement
language sql immutable parallel safe as 'select case when false then other end';
create or replace function tsql.beside(value anyelement, other anycompatible) returns anyelement
language sql immutable parallel safe as 'select value';
call tsql.make_each('{smallint,integer,bigint}', $$
call tsql.make_each('{smallint,integer,bigint,numeric,real,double precision}', 'create or replace function
  tsql.beside(value %1$s, other %%s) returns %1$s language sql immutable parallel safe return value');
call tsql.make_each('{money,smallmoney}', 'create or replace function
  tsql.beside(value %1$s, other tsql.%%1$s) returns tsql.%%1$s language sql immutable parallel safe
  return tsql.to_%%1$s(value)')$$);
-- money and whole numbers give money
call tsql.make_each('{money,smallmoney}', $$
call tsql.make_each('{tsql.money,tsql.smallmoney,tsql.tinyint,smallint,integer,bigint,numeric,double precision,text,varchar}',
  'create or replace function tsql.isnull(l tsql.%1$s, r %%s) returns tsql.%1$s language sql immutable parallel safe'
  ' return coalesce(l, tsql.to_%1$s(r))');
call tsql.make_each('{tsql.money,tsql.smallmoney,tsql.tinyint,smallint,integer,bigint}',
  'create or replace function tsql.either(l tsql.%1$s, r %%s) returns tsql.money language sql immutable parallel safe'
  ' return coalesce(l::tsql.money, tsql.to_money(r))');
call tsql.make_each('{tsql.tinyint,smallint,integer,bigint}',
  'create or replace function tsql.either(l %%s, r tsql.%1$s) returns tsql.money language sql immutable parallel safe'
  ' return coalesce(tsql.to_money(l), r::tsql.money)')$$);
-- the length of a text column, to which ISNULL converts a number; null for other columns
call tsql.make_each(array[
  ['boolean', 'case when is_national then tsql.to_nvarchar(r, length) else tsql.to_varchar(r, length) end'],
  ['smallint', 'case when is_national then tsql.to_nvarchar(r, length) else tsql.to_varchar(r, length) end'],
  ['integer', 'case when is_national then tsql.to_nvarchar(r, length) else tsql.to_varchar(r, length) end'],
  ['bigint', 'tsql.to_varchar(r, length)'], ['numeric', 'tsql.to_varchar(r, length)'],
  ['tsql.money', 'tsql.to_varchar(r, length)'], ['tsql.smallmoney', 'tsql.to_varchar(r, length)'],
  ['real', 'tsql.to_varchar(r, length)'], ['double precision', 'tsql.to_varchar(r, length)'],
  ['uuid', 'tsql.to_varchar(r, length)']
], $$create or replace function tsql.isnull(l text, r %1$s, length integer, is_national boolean) returns text
language sql immutable parallel safe return coalesce(l, case when length is null then tsql.text_of(r) else %2$s end);
create or replace function tsql.isnull(l bpchar, r %1$s, length integer, is_national boolean) returns bpchar
language sql immutable parallel safe return tsql.isnull(l, tsql.isnull(null::text, r, length, is_national), length)$$);
create or replace function tsql.isnull(l text, r anycompatible, length integer, is_national boolean) returns text
language sql stable parallel safe
as $$ select coalesce(l, tsql.within(tsql.text_of(r), length)) $$;
create or replace function tsql.isnull(l bpchar, r bpchar, length integer, is_national boolean) returns bpchar
language sql immutable parallel safe return tsql.isnull(l, r::text, length);
create or replace function tsql.isnull(l anyelement, r anycompatible, length integer, is_national boolean) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, anycompatible, integer, boolean) is
  'ISNULL of a column, with the length of a text column (null: none) and whether it is national.';
call tsql.make_each(array[['isnull(l date, r date)', 'date', 'l, r'], ['isnull(l date, r text)', 'date', 'l, tsql.moment(r)::date'],
  ['isnull(l time, r time)', 'time', 'l, r'], ['isnull(l time, r text)', 'time', 'l, tsql.moment(r)::time'],
  ['isnull(l bytea, r bytea)', 'bytea', 'l, r'],
  ['isnull(l uuid, r uuid)', 'uuid', 'l, r'], ['isnull(l uuid, r text)', 'uuid', 'l, tsql.read_guid(r)'],
  ['either(l uuid, r uuid)', 'uuid', 'l, r'], ['either(l uuid, r text)', 'uuid', 'l, tsql.read_guid(r)'],
  ['either(l text, r uuid)', 'uuid', 'tsql.read_guid(l), r'], ['either(l bytea, r bytea)', 'bytea', 'l, r'],
  ['either(l date, r date)', 'date', 'l, r'], ['either(l date, r text)', 'date', 'l, tsql.moment(r)::date'],
  ['either(l text, r date)', 'date', 'tsql.moment(l)::date, r'], ['either(l date, r timestamp)', 'timestamp', 'l, r'],
  ['either(l timestamp, r date)', 'timestamp', 'l, r'], ['either(l time, r time)', 'time', 'l, r']
], 'create or replace function tsql.%s returns %s language sql immutable parallel safe return coalesce(%s)');

create or replace function tsql.late(value anyelement) returns anyelement
language plpgsql stable parallel safe
as $$ begin return value; end $$;
comment on function tsql.late(anyelement) is
$$Its argument. PostgreSQL calculates constants when it plans a query, but none with this function: those of a CASE fail only where
they are reached.$$;
