-- The declarations of columns of tables, as the catalogue shows them (ddl/declarations.sql).

create or replace function tsql.is_national_or_image(target regclass, named name) returns boolean
language sql stable parallel safe
return (
  select case
    when atttypid in ('tsql.money'::regtype, 'tsql.smallmoney'::regtype) then true
    -- a column of a view has no declaration of its own
    when atttypid = 'bytea'::regtype then case when said is not null then said = 'image' when relkind <> 'v' then false end
    when said like 'ntext%' then true
    -- PostgreSQL's types have nchar and nvarchar
    when atttypid in ('varchar'::regtype, 'bpchar'::regtype) then said is null
    else coalesce(atttypid = to_regtype('sys.sysname'), false)
  end
  from pg_attribute
  join pg_class on pg_class.oid = attrelid,
    substring(col_description(attrelid, attnum) from '^T-SQL "(?:[^"]|"")+" ((?:(?! ?as ")[^\n])+)') as said
  where attrelid = target and attname = named and attnum > 0 and not attisdropped
);
comment on function tsql.is_national_or_image(regclass, name) is
  'Whether a column is a national text, which takes bytes as UTF-16, an image, which takes a text as its bytes, or money, which '
  'takes a text with a currency symbol; null if that is not known.';
create or replace function tsql.is_national_or_image(target regclass, place integer) returns boolean
language sql stable parallel safe
return (
  select tsql.is_national_or_image(target, attname)
  from pg_attribute
  where attrelid = target and attnum > 0 and not attisdropped
  order by attnum
  offset place - 1
  limit 1
);
comment on function tsql.is_national_or_image(regclass, integer) is 'The same for a column by its number, from 1.';
