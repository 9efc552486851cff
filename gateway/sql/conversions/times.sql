-- Conversions to times (as in conversions/numbers.sql).

create or replace function tsql.to_datetime(value timestamp) returns timestamp
language sql immutable strict parallel safe return tsql.in_range(value);
create or replace function tsql.to_datetime2(value timestamp) returns timestamp
language sql immutable strict parallel safe return value;
create or replace function tsql.to_smalldatetime(value timestamp) returns timestamp
language sql immutable strict parallel safe
return date_trunc('minute', tsql.in_small_range(value) + interval '30 seconds 1 millisecond');
create or replace function tsql.to_date(value timestamp) returns date
language sql immutable strict parallel safe return value::date;
create or replace function tsql.to_time(value timestamp) returns time
language sql immutable strict parallel safe return value::time;
create or replace function tsql.to_date(value date) returns date
language sql immutable strict parallel safe return value;
create or replace function tsql.to_time(value time) returns time
language sql immutable strict parallel safe return value;
do $$
declare
  source record;
  target record;
begin
  for target in select * from (values
    ('to_datetime', 'timestamp'), ('to_datetime2', 'timestamp'), ('to_smalldatetime', 'timestamp'),
    ('to_date', 'date'), ('to_time', 'time')
  ) as targets (name, type)
  loop
    for source in select * from (values
      ('timestamptz'), ('date'), ('time'), ('text'), ('boolean'), ('integer'), ('numeric'), ('double precision')
    ) as sources (type)
    loop
      continue when target.name in ('to_date', 'to_time', 'to_datetime2')
        and source.type in ('boolean', 'integer', 'numeric', 'double precision');
      continue when (target.name, source.type) in (('to_date', 'time'), ('to_time', 'date'), ('to_date', 'date'),
        ('to_time', 'time'));
      execute format(
        'create or replace function tsql.%I(value %s) returns %s language sql %s strict parallel safe'
        ' return tsql.%I(%s)',
        target.name, source.type, target.type,
        case source.type when 'timestamptz' then 'stable' else 'immutable' end, target.name,
        case when source.type = 'text' and target.name in ('to_datetime', 'to_smalldatetime')
          then format('tsql.read_datetime(value, 0, %L)', substr(target.name, 4)) else 'tsql.moment(value)' end);
    end loop;
  end loop;
  -- "CAST and CONVERT": explicit conversions that do not exist
  for target in select * from (values ('to_date', 'date', 'date'), ('to_time', 'time', 'time'),
    ('to_datetime2', 'timestamp', 'datetime2')
  ) as targets (name, type, shown)
  loop
    for source in select * from (values
      ('boolean', 'bit'), ('integer', 'int'), ('numeric', 'numeric'), ('double precision', 'float'), ('date', 'date'),
      ('time', 'time')
    ) as sources (type, shown)
    loop
      continue when target.shown = source.shown or target.name = 'to_datetime2' and source.type in ('date', 'time');
      execute format('create or replace function tsql.%I(value %s) returns %s language sql immutable parallel safe'
        ' return tsql.refused(529, %L, null::%3$s)', target.name, source.type, target.type,
        format('Explicit conversion from data type %s to %s is not allowed.', source.shown, target.shown));
    end loop;
  end loop;
end
$$;

-- with a style, which only applies to texts: a column may be of any type
do $$
declare
  source record;
  takes record;
begin
  for source in select * from (values
    ('timestamp', 'tsql.moment(value)', null), ('timestamptz', 'tsql.moment(value)', null),
    ('date', 'tsql.moment(value)', null), ('time', 'tsql.moment(value)', null),
    ('boolean', null, 'tsql.moment(value::integer)'), ('smallint', null, 'tsql.moment(value::integer)'),
    ('integer', null, 'tsql.moment(value)'), ('bigint', null, 'tsql.moment(value::numeric)'),
    ('numeric', null, 'tsql.moment(value)'), ('double precision', null, 'tsql.moment(value)'),
    ('real', null, 'tsql.moment(value::double precision)'),
    ('character', null, null), ('uuid', null, null), ('bytea', null, null), ('xml', null, null)
  ) as sources (type, always, number)
  loop
    for takes in select * from (values
      -- a number is the days of a datetime or smalldatetime, with its own errors
      ('value %s, style integer', 'tsql.read_datetime(tsql.text_of(value), style)', null),
      ('value %s, style integer, type_ text', 'tsql.read_datetime(tsql.text_of(value), style, type_)', source.number)
    ) as readers (parameters, text, number)
    loop
      execute format('create or replace function tsql.read_datetime(' || takes.parameters || ') returns timestamp'
        ' language sql %s strict parallel safe return %s', source.type,
        case source.type when 'timestamptz' then 'stable' else 'immutable' end,
        coalesce(source.always, takes.number, takes.text));
    end loop;
  end loop;
end
$$;

-- a sum has the type of the column
do $$
declare
  type_ text;
begin
  foreach type_ in array array['datetime', 'smalldatetime'] loop
    execute format('create or replace function tsql.dateadd(part text, number integer, moment tsql.%1$s) returns tsql.%1$s'
      ' language sql immutable strict parallel safe'
      ' return tsql.to_%1$s(tsql.added(tsql.dateadd(part, number, moment::timestamp), %1$L))', type_);
  end loop;
end
$$;
