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

create or replace function tsql.lesser(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable strict parallel safe return case when tsql.compare_variants(r, l) < 0 then r else l end;
create or replace function tsql.greater(l tsql.sql_variant, r tsql.sql_variant) returns tsql.sql_variant
language sql immutable strict parallel safe return case when tsql.compare_variants(r, l) > 0 then r else l end;
create or replace aggregate tsql.min(tsql.sql_variant) (sfunc = tsql.lesser, stype = tsql.sql_variant);
create or replace aggregate tsql.max(tsql.sql_variant) (sfunc = tsql.greater, stype = tsql.sql_variant);
