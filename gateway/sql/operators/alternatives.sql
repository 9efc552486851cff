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
create or replace function tsql.isnull(l bpchar, r bpchar) returns bpchar
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l bpchar, r text) returns bpchar
language sql immutable parallel safe return coalesce(l, r::bpchar);
create or replace function tsql.isnull(l bpchar, r text, length integer) returns bpchar
language sql immutable parallel safe return coalesce(l, rpad(tsql.within(r, length), coalesce(length, length(r)))::bpchar);
create or replace function tsql.isnull(l text, r text, length integer) returns text
language sql immutable parallel safe return coalesce(l, tsql.within(r, length));
create or replace function tsql.isnull(l anyelement, r text, length integer) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, text, integer) is 'ISNULL of a column with a text as its replacement, cut to the column''s length.';
create or replace function tsql.either(l bpchar, r bpchar) returns bpchar
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l bpchar, r text) returns text
language sql immutable parallel safe return coalesce(tsql.text_of(l), r);
create or replace function tsql.either(l text, r bpchar) returns text
language sql immutable parallel safe return coalesce(l, tsql.text_of(r));
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
do $$
declare
  whole text;
  other text;
begin
  foreach whole in array array['smallint', 'integer', 'bigint'] loop
    foreach other in array array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'tsql.money',
      'tsql.smallmoney'] loop
      execute format('create or replace function tsql.beside(value %s, other %s) returns %s language sql immutable'
        ' parallel safe return %s', whole, other, case when other like '%money' then other else whole end,
        case when other like '%money' then replace(other, '.', '.to_') || '(value)' else 'value' end);
    end loop;
  end loop;
end
$$;
-- money and whole numbers give money
do $$
declare
  l text;
  r text;
begin
  foreach l in array array['tsql.money', 'tsql.smallmoney'] loop
    foreach r in array array['tsql.money', 'tsql.smallmoney', 'tsql.tinyint', 'smallint', 'integer', 'bigint', 'numeric',
      'double precision', 'text', 'varchar'] loop
      execute format('create or replace function tsql.isnull(l %1$s, r %2$s) returns %1$s language sql immutable'
        ' parallel safe return coalesce(l, tsql.to_%3$s(r))', l, r, substr(l, 6));
      continue when r in ('numeric', 'double precision', 'text', 'varchar');
      execute format('create or replace function tsql.either(l %s, r %s) returns tsql.money language sql immutable'
        ' parallel safe return coalesce(l::tsql.money, tsql.to_money(r))', l, r);
      continue when r like '%money';
      execute format('create or replace function tsql.either(l %s, r %s) returns tsql.money language sql immutable'
        ' parallel safe return coalesce(tsql.to_money(l), r::tsql.money)', r, l);
    end loop;
  end loop;
end
$$;
-- the length of a text column, to which ISNULL converts a number; null for other columns
do $$
declare
  r text;
begin
  foreach r in array array['boolean', 'smallint', 'integer', 'bigint', 'numeric', 'tsql.money', 'tsql.smallmoney', 'real',
    'double precision', 'uuid'] loop
    execute format('create or replace function tsql.isnull(l text, r %s, length integer, is_national boolean) returns text'
      ' language sql immutable parallel safe return coalesce(l, case when length is null then tsql.text_of(r) else %s end)', r,
      case when r in ('boolean', 'smallint', 'integer')
        then 'case when is_national then tsql.to_nvarchar(r, length) else tsql.to_varchar(r, length) end'
        else 'tsql.to_varchar(r, length)' end);
    execute format('create or replace function tsql.isnull(l bpchar, r %s, length integer, is_national boolean) returns bpchar'
      ' language sql immutable parallel safe'
      ' return tsql.isnull(l, tsql.isnull(null::text, r, length, is_national), length)', r);
  end loop;
end
$$;
create or replace function tsql.isnull(l text, r anycompatible, length integer, is_national boolean) returns text
language sql stable parallel safe
as $$ select coalesce(l, tsql.within(tsql.text_of(r), length)) $$;
create or replace function tsql.isnull(l bpchar, r bpchar, length integer, is_national boolean) returns bpchar
language sql immutable parallel safe return tsql.isnull(l, r::text, length);
create or replace function tsql.isnull(l anyelement, r anycompatible, length integer, is_national boolean) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, anycompatible, integer, boolean) is
  'ISNULL of a column, with the length of a text column (null: none) and whether it is national.';
create or replace function tsql.isnull(l date, r date) returns date
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l date, r text) returns date
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::date);
create or replace function tsql.isnull(l time, r time) returns time
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l time, r text) returns time
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::time);
create or replace function tsql.isnull(l bytea, r bytea) returns bytea
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l uuid, r uuid) returns uuid
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l uuid, r text) returns uuid
language sql immutable parallel safe return coalesce(l, tsql.read_guid(r));
create or replace function tsql.either(l uuid, r uuid) returns uuid
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l uuid, r text) returns uuid
language sql immutable parallel safe return coalesce(l, tsql.read_guid(r));
create or replace function tsql.either(l text, r uuid) returns uuid
language sql immutable parallel safe return coalesce(tsql.read_guid(l), r);
create or replace function tsql.either(l bytea, r bytea) returns bytea
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l date, r date) returns date
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l date, r text) returns date
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::date);
create or replace function tsql.either(l text, r date) returns date
language sql immutable parallel safe return coalesce(tsql.moment(l)::date, r);
create or replace function tsql.either(l date, r timestamp) returns timestamp
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l timestamp, r date) returns timestamp
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l time, r time) returns time
language sql immutable parallel safe return coalesce(l, r);

create or replace function tsql.late(value anyelement) returns anyelement
language plpgsql stable parallel safe
as $$ begin return value; end $$;
comment on function tsql.late(anyelement) is
$$Its argument. PostgreSQL calculates constants when it plans a query, but none with this function: those of a CASE fail only where
they are reached.$$;
