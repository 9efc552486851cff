-- Values on their way into columns. The compiler does not know the columns: a value is wrapped in a type of its own,
-- and PostgreSQL, which does, assigns it by a cast that converts as T-SQL does.

create or replace function tsql.fitted(moment timestamp, digits integer) returns timestamp
language sql immutable parallel safe
return case digits when 4 then tsql.to_datetime(moment) when 1 then tsql.to_smalldatetime(moment) else moment end;
comment on function tsql.fitted(timestamp, integer) is
  'Rounded as datetime and smalldatetime are, whose domains have 4 and 1 digits.';

do $$
declare
  source record;
  target record;
  body text;
  volatility text;
begin
  for source in select * from (values
    ('bit', 'boolean'), ('smallint', 'smallint'), ('int', 'integer'), ('bigint', 'bigint'), ('numeric', 'numeric'),
    ('real', 'real'), ('float', 'double precision'), ('text', 'text'), ('char', 'character'),
    ('timestamp', 'timestamp'), ('timestamptz', 'timestamptz'), ('date', 'date'), ('time', 'time'),
    ('bytea', 'bytea'), ('uuid', 'uuid'), ('xml', 'xml')
  ) as sources (name, type)
  loop
    if to_regtype('tsql.carried_' || source.name) is null then
      execute format('create type tsql.carried_%s as (value %s)', source.name,
        case source.type when 'character' then 'bpchar' else source.type end);
    end if;
    execute format('create or replace function tsql.carry(value %s) returns tsql.carried_%s'
      ' language sql immutable parallel safe return row(value)::tsql.carried_%2$s', source.type, source.name);
    for target in select * from (values
      ('boolean', 'to_bit'), ('smallint', 'to_smallint'), ('integer', 'to_int'), ('bigint', 'to_bigint'),
      ('numeric', 'to_numeric'), ('real', 'to_real'), ('double precision', 'to_float'), ('text', 'text_of'),
      ('varchar', 'text_of'), ('bpchar', 'text_of'), ('timestamp', 'moment'), ('timestamptz', 'moment'),
      ('date', 'to_date'), ('time', 'to_time'), ('bytea', 'varbytes'), ('uuid', 'to_guid'), ('xml', '')
    ) as targets (type, reader)
    loop
      volatility := 'immutable';
      body := null;
      if source.type = target.type then
        body := '(carried).value';
      elsif target.type = 'timestamptz' and source.type in ('timestamp', 'date', 'text') then
        body := 'tsql.moment((carried).value)::timestamptz';
        volatility := 'stable';
      elsif (source.type, target.type) = ('text', 'xml') then
        body := '(carried).value::xml';
      elsif target.reader <> '' and exists (
        select from pg_proc
        where pronamespace = 'tsql'::regnamespace and proname = target.reader and pronargs = 1
          and proargtypes[0] = to_regtype(source.type)
      ) and target.type <> 'timestamptz' then
        body := format('tsql.%I((carried).value)', target.reader);
        if source.type = 'timestamptz' then
          volatility := 'stable';
        end if;
      end if;
      continue when body is null;
      if target.type = 'timestamp' then
        execute format('create or replace function tsql.carried_to_timestamp(carried tsql.carried_%s, digits integer)'
          ' returns timestamp language sql %s parallel safe return tsql.fitted(%s, digits)',
          source.name, volatility, body);
      else
        execute format('create or replace function tsql.%I(carried tsql.carried_%s) returns %s'
          ' language sql %s parallel safe return %s',
          'carried_to_' || replace(target.type, ' ', '_'), source.name, target.type, volatility, body);
      end if;
      if not exists (
        select from pg_cast
        where castsource = to_regtype('tsql.carried_' || source.name) and casttarget = to_regtype(target.type)
      ) then
        execute format('create cast (tsql.carried_%s as %s) with function tsql.%I(tsql.carried_%1$s%4$s) as assignment',
          source.name, target.type, 'carried_to_' || replace(target.type, ' ', '_'),
          case target.type when 'timestamp' then ', integer' else '' end);
      end if;
    end loop;
  end loop;
end
$$;

create or replace function tsql.same_columns(target text, columns text[], source text) returns boolean
language plpgsql stable
as $$
declare
  wanted text[];
  given text[];
begin
  select array_agg(format_type(atttypid, atttypmod) order by coalesce(array_position(columns, attname::text), attnum))
  into wanted
  from pg_attribute
  where attrelid = target::regclass and attnum > 0 and not attisdropped
    and (columns is null or attname = any(columns));
  select array_agg(format_type(atttypid, atttypmod) order by attnum)
  into given
  from pg_attribute
  where attrelid = source::regclass and attnum > 0 and not attisdropped;
  if wanted is distinct from given then
    perform tsql.fail(213, 'Column name or number of supplied values does not match table definition: '
      'the columns are not of the same types. Name them.');
  end if;
  return true;
end
$$;
comment on function tsql.same_columns(text, text[], text) is
  'True when the columns of one table have the types of another''s, one by one; error 213 otherwise.';

create or replace function tsql.takes(target text, number integer) returns boolean
language plpgsql stable
as $$
declare
  columns integer;
begin
  -- identity and computed columns take no value
  select count(*) into columns
  from pg_attribute
  where attrelid = target::regclass and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = '';
  if columns <> number then
    perform tsql.fail(213, 'Column name or number of supplied values does not match table definition.');
  end if;
  return true;
end
$$;
comment on function tsql.takes(text, integer) is
  'True when an insert that names no columns of a table gives it so many values; error 213 otherwise.';

create or replace function tsql.filled_columns(target text) returns text[]
language sql stable
return (
  select array_agg(attname::text order by attnum) filter (where attidentity = '' and attgenerated = '')
  from pg_attribute
  where attrelid = to_regclass(target) and attnum > 0 and not attisdropped
  having bool_or(attidentity <> '' or attgenerated <> '')
);
comment on function tsql.filled_columns(text) is
  'The columns that an insert without columns fills, of a table that has others too: identity or computed ones; null '
  'for any other table and for none.';
