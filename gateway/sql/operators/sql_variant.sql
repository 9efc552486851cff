-- Comparisons of sql_variants, also with values of other types, which are converted to sql_variants ("Data type
-- precedence").

call tsql.make_each('{{=,eq},{<>,ne},{<,lt},{<=,le},{>,gt},{>=,ge}}', $$
call tsql.make_operator('%1$s', '%2$s', 'tsql.sql_variant', 'tsql.sql_variant', 'boolean', '(tsql.compare_variants(l, r) %1$s 0)');
call tsql.make_each('{boolean,smallint,integer,bigint,numeric,real,double precision,text,bytea,uuid,date,time,timestamp,'
  'tsql.datetimeoffset}', $types$
call tsql.make_operator('%1$s', '%2$s', 'tsql.sql_variant', '%%1$s', 'boolean',
  '(tsql.compare_variants(l, tsql.comparable(r)) %1$s 0)');
call tsql.make_operator('%1$s', '%2$s', '%%1$s', 'tsql.sql_variant', 'boolean',
  '(tsql.compare_variants(tsql.comparable(l), r) %1$s 0)')$types$)$$);
call tsql.make_operator_class('tsql.sql_variant', 'by_family', 'tsql.compare_variants');

create or replace function tsql.isnull(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable parallel safe return case when (l).base is null then r else l end;
create or replace function tsql.either(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable parallel safe return tsql.isnull(l, r);
do $$
declare
  side record;
  function_ text;
begin
  -- a value of another known type is converted to a sql_variant
  for side in
    select format_type(proargtypes[0], null) as type from pg_proc
    where pronamespace = 'tsql'::regnamespace and proname = 'to_sql_variant' and proargtypes[0] <> 'tsql.sql_variant'::regtype
      and format_type(proargtypes[0], null) not like 'tsql.ci\_%'
  loop
    foreach function_ in array array['isnull', 'either'] loop
      execute format('create or replace function tsql.%I(l tsql.sql_variant, r %s) returns tsql.sql_variant'
        ' language sql immutable parallel safe return tsql.isnull(l, tsql.to_sql_variant(r))', function_, side.type);
    end loop;
    execute format('create or replace function tsql.either(l %s, r tsql.sql_variant) returns tsql.sql_variant'
      ' language sql immutable parallel safe return tsql.isnull(tsql.to_sql_variant(l), r)', side.type);
  end loop;
end
$$;

create or replace function tsql.lesser(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable strict parallel safe return case when tsql.compare_variants(r, l) < 0 then r else l end;
create or replace function tsql.greater(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable strict parallel safe return case when tsql.compare_variants(r, l) > 0 then r else l end;
create or replace aggregate tsql.min(tsql.sql_variant) (sfunc = tsql.lesser, stype = tsql.sql_variant);
create or replace aggregate tsql.max(tsql.sql_variant) (sfunc = tsql.greater, stype = tsql.sql_variant);
