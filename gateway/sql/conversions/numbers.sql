-- Conversions to numbers. A conversion is a CAST, a CONVERT without a style, or implicit: one function for each target type,
-- with an overload for each source type. Sources: "CAST and CONVERT" and "Data type conversion" of SQL Server's documentation.

create or replace function tsql.whole(value double precision) returns numeric
language sql immutable strict parallel safe
return case when pg_catalog.abs(value) < 9223372036854775808::double precision
  then pg_catalog.trunc(value)::bigint::numeric else pg_catalog.trunc(value::text::numeric) end;
comment on function tsql.whole(double precision) is
  'The integer part with all digits: PostgreSQL''s text of a float has at most 17.';

create or replace function tsql.days(moment timestamp) returns numeric
language sql immutable strict parallel safe
-- with as many digits as a float has
return pg_catalog.round(pg_catalog.round(extract(epoch from moment - timestamp '1900-01-01') * 300), 20) / 25920000;
comment on function tsql.days(timestamp) is 'Days since 1900, the number of a datetime, in steps of 1/300 s.';

create or replace function tsql.read_big_endian(value bytea) returns numeric
language plpgsql immutable strict parallel safe
as $$
declare
  number numeric := 0;
begin
  -- only the last eight bytes are used; eight bytes are a signed number
  for index in greatest(length(value) - 8, 0) .. length(value) - 1 loop
    number := number * 256 + get_byte(value, index);
  end loop;
  return number;
end
$$;

create or replace function tsql.signed(value numeric, bytes integer) returns numeric
language sql immutable strict parallel safe
return case when value >= power(2::numeric, bytes * 8 - 1) then value - power(2::numeric, bytes * 8) else value end;

create or replace function tsql.in_small_range(value timestamp) returns timestamp
language plpgsql immutable strict parallel safe
as $$
begin
  if value < timestamp '1900-01-01' or value >= timestamp '2079-06-06 23:59:30' then
    perform tsql.fail(242, 'The conversion to a smalldatetime data type resulted in an out-of-range value.');
  end if;
  return value;
end
$$;

create or replace function tsql.no_number(value double precision) returns numeric
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail(8023, format('The supplied value is not a valid instance of data type float: %s is no number.', value));
  return null;
end
$$;

create or replace function tsql.exact(value double precision) returns numeric
language sql immutable strict parallel safe
return case when abs(value) < 'infinity' then value::text::numeric else tsql.no_number(value) end;
comment on function tsql.exact(double precision) is
  'A float as a decimal; error 8023 for NaN and infinities, which T-SQL''s decimal does not have.';

-- conversions to numbers from other numbers, texts and times
do $$
declare
  source record;
  target record;
  body text;
  whole text;
begin
  for target in select * from (values
    ('to_bit', 'boolean', null::numeric, null::numeric, 'bit'),
    ('to_tinyint', 'smallint', 0, 255, 'tinyint'),
    ('to_smallint', 'smallint', -32768, 32767, 'smallint'),
    ('to_int', 'integer', -2147483648, 2147483647, 'int'),
    ('to_bigint', 'bigint', -9223372036854775808, 9223372036854775807, 'bigint'),
    ('to_numeric', 'numeric', null, null, 'numeric'),
    ('to_money', 'tsql.money', -922337203685477.5808, 922337203685477.5807, 'money'),
    ('to_smallmoney', 'tsql.smallmoney', -214748.3648, 214748.3647, 'smallmoney'),
    ('to_real', 'real', null, null, 'real'),
    ('to_float', 'double precision', null, null, 'float')
  ) as targets (name, type, low, high, shown)
  loop
    for source in select * from (values
      ('boolean', 'value::integer::numeric', 'int'),
      ('smallint', 'value::numeric', 'int'),
      ('integer', 'value::numeric', 'int'),
      ('bigint', 'value::numeric', 'bigint'),
      ('numeric', 'value', 'numeric'),
      ('tsql.money', 'value::numeric', 'money'),
      ('tsql.smallmoney', 'value::numeric', 'money'),
      -- exactly, not by the shortest text
      ('real', 'value::double precision::text::numeric', 'float'),
      ('double precision', 'value::text::numeric', 'float'),
      ('text', '', 'varchar'),
      ('timestamp', 'tsql.days(value)', 'datetime'),
      ('timestamptz', 'tsql.days(value::timestamp)', 'datetime')
    ) as sources (type, number, shown)
    loop
      body := source.number;
      whole := body;
      if source.type = 'text' then
        body := case target.name
          when 'to_bit' then 'tsql.read_bit(value)'
          when 'to_numeric' then 'tsql.read_decimal(value)'
          when 'to_money' then 'tsql.read_money(value)'
          when 'to_smallmoney' then 'tsql.read_money(value)'
          when 'to_real' then 'tsql.read_float(value)'
          when 'to_float' then 'tsql.read_float(value)'
          else format('tsql.read_integer(value, %L)', target.shown) end;
        whole := body;
      elsif target.name = 'to_numeric' and source.shown = 'float' then
        body := 'tsql.exact(value)';
      elsif target.name = 'to_bit' then
        body := case source.type when 'boolean' then 'value' else body || ' <> 0' end;
      elsif target.name in ('to_real', 'to_float') and source.type in ('real', 'double precision', 'numeric') then
        body := 'value';
      elsif target.name in ('to_tinyint', 'to_smallint', 'to_int', 'to_bigint') then
        -- "Truncating and rounding results" of "CAST and CONVERT": money is rounded
        body := case when source.type like 'timestamp%' then format('floor(%s + 0.5)', body)
          when source.shown = 'money' then format('round(%s)', body)
          when source.shown = 'float' then 'tsql.whole(value)'
          else format('trunc(%s)', body) end;
      end if;
      if source.type = target.type and target.name <> 'to_tinyint'
        or (source.type, target.name) in (('smallint', 'to_int'), ('smallint', 'to_bigint'), ('integer', 'to_bigint'))
      then
        body := 'value';
      elsif target.low is not null then
        -- money keeps four decimals
        body := format('tsql.narrowed(%s, %s, %s, %L, %L, %s)',
          case when target.shown like '%money' then format('round(%s, 4)', body) else body end,
          target.low, target.high, target.shown, source.shown, whole);
      end if;
      execute format(
        'create or replace function tsql.%I(value %s) returns %s language sql %s strict parallel safe'
        ' return (%s)::%s',
        target.name, source.type, target.type,
        case source.type when 'timestamptz' then 'stable' else 'immutable' end, body, target.type);
    end loop;
    for source in select * from (values ('date'), ('time')) as sources (type)
    loop
      execute format('create or replace function tsql.%I(value %s) returns %s language sql immutable parallel safe'
        ' return tsql.refused(529, %L, null::%3$s)', target.name, source.type, target.type,
        format('Explicit conversion from data type %s to %s is not allowed.', source.type, target.shown));
    end loop;
  end loop;
  -- bytes to a number: the last ones are used
  for target in select * from (values ('to_bit', 'boolean', 1), ('to_tinyint', 'smallint', 1),
    ('to_smallint', 'smallint', 2), ('to_int', 'integer', 4), ('to_bigint', 'bigint', 8)
  ) as targets (name, type, bytes)
  loop
    execute format(
      'create or replace function tsql.%I(value bytea) returns %s language sql immutable strict parallel safe'
      ' return %s', target.name, target.type,
      case target.name when 'to_bit' then 'tsql.read_big_endian(value) <> 0'
        else format('tsql.signed(tsql.read_big_endian(substring(value from greatest(length(value) - %s, 1))), %s)::%s',
          target.bytes - 1, case target.name when 'to_tinyint' then 9 else target.bytes end, target.type) end);
  end loop;
end
$$;
