-- Conversions: CAST, CONVERT without a style, and implicit ones. One function for each target type, with an overload for
-- each source type. Sources: "CAST and CONVERT" and "Data type conversion" of SQL Server's documentation.

create or replace function tsql.wrong_number(value text, type_ text) returns bigint
language plpgsql immutable
as $$
begin
  if type_ = 'bigint' then
    perform tsql.fail(8114, 'Error converting data type varchar to bigint.');
  end if;
  perform tsql.fail(245,
    format('Conversion failed when converting the varchar value ''%s'' to data type %s.', value, type_));
  return null;
end
$$;

create or replace function tsql.read_integer(value text, type_ text) returns numeric
language sql immutable strict parallel safe
return case
  when value ~ '^ *[-+]? *[0-9]+ *$' then translate(value, ' +', '')::numeric
  when value ~ '^ *[-+]? *$' then 0
  else tsql.wrong_number(value, type_)
end;
comment on function tsql.read_integer(text, text) is
  'The integer in a text, which may have blanks around digits and sign; blanks or a sign alone are 0. Error 245 otherwise.';

create or replace function tsql.overflow(value numeric, type_ text, source text) returns void
language plpgsql immutable parallel safe
as $$
begin
  -- SQL Server's error numbers, by the source type: "Database Engine events and errors"
  if source = 'int' and type_ in ('tinyint', 'smallint', 'int', 'smallmoney') then
    perform tsql.fail(220, format('Arithmetic overflow error for data type %s, value = %s.', type_, value));
  elsif source = 'float' and type_ in ('tinyint', 'smallint', 'int') then
    perform tsql.fail(232, format('Arithmetic overflow error for type %s, value = %s.', type_, round(value, 6)));
  elsif source = 'varchar' and type_ in ('tinyint', 'smallint') then
    perform tsql.fail(244, format('The conversion of the varchar value ''%s'' overflowed an %s column. '
      'Use a larger integer column.', value, case type_ when 'tinyint' then 'INT1' else 'INT2' end));
  elsif source = 'varchar' and type_ = 'int' then
    perform tsql.fail(248, format('The conversion of the varchar value ''%s'' overflowed an int column.', value));
  elsif source = 'money' and type_ = 'smallint' and abs(value) < 2147483648 then
    perform tsql.fail(220, format('Arithmetic overflow error for data type smallint, value = %s.', trunc(value * 10000)));
  elsif source = 'money' and type_ = 'tinyint' and abs(value) < 2147483648 then
    perform tsql.fail(232, format('Arithmetic overflow error for type tinyint, value = %s.', round(value, 6)));
  elsif source = 'money' and type_ in ('tinyint', 'smallint', 'int', 'smallmoney') then
    perform tsql.fail(237, format('There is insufficient result space to convert a money value to %s.', type_));
  end if;
  perform tsql.fail(8115, format('Arithmetic overflow error converting expression to data type %s.', type_));
end
$$;
comment on function tsql.overflow(numeric, text, text) is
  'The error of a number outside the range of a type: 220, 232, 237, 244, 248 or 8115, depending on its own type.';

create or replace function tsql.narrowed(
  value numeric, low numeric, high numeric, type_ text, source text, whole numeric
) returns numeric
language plpgsql immutable strict parallel safe
as $$
begin
  if value < low or value > high then
    perform tsql.overflow(whole, type_, source);
  end if;
  return value;
end
$$;
comment on function tsql.narrowed(numeric, numeric, numeric, text, text, numeric) is
  'The number, if it is in a range; whole is the number before rounding.';

create or replace function tsql.read_decimal(value text) returns numeric
language plpgsql immutable strict parallel safe
as $$
begin
  if value !~ '^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)\s*$' then
    perform tsql.fail(8114, 'Error converting data type varchar to numeric.');
  end if;
  return btrim(value, E' \t\n\r+')::numeric;
end
$$;

create or replace function tsql.read_float(value text) returns double precision
language plpgsql immutable strict parallel safe
as $$
begin
  if value ~ '^\s*$' then
    return 0;
  end if;
  if value !~ '^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][-+]?[0-9]+)?\s*$' then
    perform tsql.fail(8114, 'Error converting data type varchar to float.');
  end if;
  return translate(btrim(value, E' \t\n\r+'), 'dD', 'ee')::double precision;
end
$$;

create or replace function tsql.currencies() returns text
language sql immutable parallel safe
return U&'$\00A2\00A3\00A4\00A5\09F2\09F3\0E3F\17DB\20A0\20A1\20A2\20A3\20A4\20A5\20A6\20A7\20A8\20A9\20AA\20AB\20AC\20AD\20AE\20AF'
  '\20B0\20B1\FDFC\FE69\FF04\FFE0\FFE1\FFE5\FFE6';
comment on function tsql.currencies() is
  'The symbols that a text of money may have ("money and smallmoney", "Use of currency symbols").';

create or replace function tsql.read_money(value text) returns numeric
language plpgsql immutable strict parallel safe
as $$
declare
  digits text := btrim(value, E' \t\n\r');
begin
  if digits = '' then
    return 0;
  end if;
  if digits !~ ('^([-+] *[' || tsql.currencies() || ']?|[' || tsql.currencies() || ']? *[-+]?) *[0-9,]*\.?[0-9]*$')
    or digits !~ '[0-9]' then
    perform tsql.fail(235, 'Cannot convert a char value to money. The char value has incorrect syntax.');
  end if;
  return translate(digits, tsql.currencies() || ',+ ', '')::numeric;
end
$$;

create or replace function tsql.read_bit(value text) returns boolean
language sql immutable strict parallel safe
return case
  when lower(btrim(value)) = 'true' then true
  when lower(btrim(value)) = 'false' then false
  else tsql.read_integer(value, 'bit') <> 0
end;

create or replace function tsql.read_guid(value text) returns uuid
language plpgsql immutable strict parallel safe
as $$
begin
  -- longer texts are cut ("uniqueidentifier")
  if value !~ '^ *(\{[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})' then
    perform tsql.fail(8169, 'Conversion failed when converting from a character string to uniqueidentifier.');
  end if;
  return pg_catalog.left(ltrim(value, ' {'), 36)::uuid;
end
$$;

create or replace function tsql.padded(value character) returns text
language sql immutable parallel safe
return value::text || repeat(' ', octet_length(value) - octet_length(value::text)
  - (tsql.units(value::text) - length(value::text)));
comment on function tsql.padded(character) is 'A char(n) as text with its blanks, which PostgreSQL''s cast removes.';

create or replace function tsql.read_bytes(value bytea) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  return convert_from(value, 'SQL_ASCII');
exception when character_not_in_repertoire or untranslatable_character then
  perform tsql.fail(8114, 'Error converting data type varbinary to varchar: bytes beyond ASCII have no charset here.');
end
$$;

create or replace function tsql.ascii_bytes(value text) returns bytea
language plpgsql immutable strict parallel safe
as $$
begin
  if octet_length(value) <> length(value) then
    perform tsql.fail(8114, 'Error converting data type varchar to varbinary: characters beyond ASCII have no bytes here.');
  end if;
  return convert_to(value, 'UTF8');
end
$$;

create or replace function tsql.float_text(value double precision, style integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  digits integer := case style when 0 then 6 when 1 then 8 when 2 then 16 when 3 then 17 end;
  shown text;
  mantissa text;
  exponent integer;
begin
  if digits is null then
    perform tsql.fail(281, style || ' is not a valid style number when converting from float to a character string.');
  end if;
  if value = 0 and style = 0 then
    return '0';
  end if;
  -- d.ddde+xx with so many digits, rounded exactly
  shown := to_char(value::numeric, '9.' || repeat('9', digits - 1) || 'EEEE');
  if value::numeric::double precision <> value or style > 0 then
    -- more digits than numeric's cast keeps
    shown := to_char(value::text::numeric, '9.' || repeat('9', digits - 1) || 'EEEE');
  end if;
  mantissa := btrim(split_part(shown, 'e', 1));
  exponent := split_part(shown, 'e', 2)::integer;
  if style > 0 then
    return mantissa || 'e' || case when exponent < 0 then '-' else '+' end || lpad(abs(exponent)::text, 3, '0');
  end if;
  if exponent < -4 or exponent >= 6 then
    mantissa := case when mantissa like '%.%' then rtrim(rtrim(mantissa, '0'), '.') else mantissa end;
    return mantissa || 'e' || case when exponent < 0 then '-' else '+' end || lpad(abs(exponent)::text, 3, '0');
  end if;
  shown := round(value::text::numeric, 5 - exponent)::text;
  return case when shown like '%.%' then rtrim(rtrim(shown, '0'), '.') else shown end;
end
$$;
comment on function tsql.float_text(double precision, integer) is
  'Style 0: at most six digits, an exponent where needed; 1: eight digits, 2: sixteen, 3: seventeen, always with an '
  'exponent of three digits (SQL Server, "CAST and CONVERT", float and real styles).';

create or replace function tsql.money_text(value numeric, style integer) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  return case style
    when 1 then ltrim(to_char(round(value, 2), 'FM999G999G999G999G990D00'))
    when 2 then round(value, 4)::text
    when 126 then round(value, 4)::text
    else round(value, 2)::text
  end;
end
$$;

-- conversions to texts of any length
create or replace function tsql.text_of(value text) returns text
language sql immutable parallel safe return value;
create or replace function tsql.text_of(value character) returns text
language sql immutable parallel safe return tsql.padded(value);
create or replace function tsql.text_of(value boolean) returns text
language sql immutable parallel safe return value::integer::text;
create or replace function tsql.text_of(value smallint) returns text
language sql immutable parallel safe return value::text;
create or replace function tsql.text_of(value integer) returns text
language sql immutable parallel safe return value::text;
create or replace function tsql.text_of(value bigint) returns text
language sql immutable parallel safe return value::text;
create or replace function tsql.text_of(value numeric) returns text
language sql immutable parallel safe return value::text;
create or replace function tsql.text_of(value tsql.money) returns text
language sql immutable parallel safe return tsql.money_text(value, 0);
create or replace function tsql.text_of(value tsql.smallmoney) returns text
language sql immutable parallel safe return tsql.money_text(value, 0);
create or replace function tsql.text_of(value real) returns text
language sql immutable parallel safe return tsql.float_text(value::text::double precision, 0);
create or replace function tsql.text_of(value double precision) returns text
language sql immutable parallel safe return tsql.float_text(value, 0);
create or replace function tsql.text_of(value timestamp) returns text
language sql immutable parallel safe return tsql.datetime_text(value, 0);
create or replace function tsql.text_of(value timestamptz) returns text
language sql stable parallel safe return tsql.datetime_text(value::timestamp, 0);
create or replace function tsql.text_of(value date) returns text
language sql immutable parallel safe return tsql.date_text(value, 121);
create or replace function tsql.text_of(value time) returns text
language sql immutable parallel safe return tsql.time_text(value, 121, 7);
create or replace function tsql.text_of(value uuid) returns text
language sql immutable parallel safe return upper(value::text);
create or replace function tsql.text_of(value bytea) returns text
language sql immutable parallel safe return tsql.read_bytes(value);
create or replace function tsql.text_of(value xml) returns text
language sql immutable parallel safe return value::text;

-- the declared digits of columns of datetime2(n) and time(n) (ddl/declarations.sql)
create or replace function tsql.digits_of(tables regclass[], named name) returns integer
language sql stable parallel safe
return (
  select case when declared is not null then coalesce(declared[1]::integer, 7) end
  from unnest(tables) with ordinality as sources (source, place)
  join pg_attribute on attrelid = source and attname = named and attnum > 0 and not attisdropped,
    regexp_match(col_description(attrelid, attnum), '^T-SQL "(?:[^"]|"")+" (?:datetime2|time)(?:\((\d)\))?(?: as "|\n|$)') as declared
  order by place
  limit 1
);
comment on function tsql.digits_of(regclass[], name) is
  'The digits of a column of the first of these tables that has it, if it is declared as a datetime2 or time.';
create or replace function tsql.digits_returned(function text) returns integer
language sql stable parallel safe
return (
  select case when declared is not null then coalesce(declared[1]::integer, 7) end
  from pg_proc, regexp_match(right(prosrc, 100), '\n-- returns (?:datetime2|time)(?:\((\d)\))?\n$') as declared
  where oid = to_regproc(function)
);
comment on function tsql.digits_returned(text) is 'The digits of a function of T-SQL that returns a datetime2 or time.';
create or replace function tsql.is_national(tables regclass[], named name) returns boolean
language sql stable parallel safe
return coalesce((
  -- PostgreSQL's types have nchar and nvarchar
  select case when said like 'ntext%' then true when atttypid in ('varchar'::regtype, 'bpchar'::regtype) then said is null
    else atttypid = to_regtype('sys.sysname') end
  from unnest(tables) with ordinality as sources (source, place)
  join pg_attribute on attrelid = source and attname = named and attnum > 0 and not attisdropped,
    substring(col_description(attrelid, attnum) from '^T-SQL "(?:[^"]|"")+" ((?:(?! ?as ")[^\n])+)') as said
  order by place
  limit 1
), false);
comment on function tsql.is_national(regclass[], name) is
  'Whether a column of the first of these tables that has it is declared as nchar, nvarchar or ntext.';
create or replace function tsql.is_national(target regclass, place integer) returns boolean
language sql stable parallel safe
return (
  select tsql.is_national(array[target], attname)
  from pg_attribute
  where attrelid = target and attnum > 0 and not attisdropped
  order by attnum
  offset place - 1
  limit 1
);
comment on function tsql.is_national(regclass, integer) is 'The same for a column by its number, from 1.';
create or replace function tsql.is_national_or_image(target regclass, named name) returns boolean
language sql stable parallel safe
return (
  select case
    when atttypid in ('tsql.money'::regtype, 'tsql.smallmoney'::regtype) then true
    when atttypid <> 'bytea'::regtype then tsql.is_national(array[target], named)
    when said is not null then said = 'image'
    -- a column of a view has no declaration of its own
    when relkind <> 'v' then false
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
create or replace function tsql.length_of(tables regclass[], named name) returns integer
language sql stable parallel safe
return (
  select case when atttypid in ('varchar'::regtype, 'bpchar'::regtype) and atttypmod > 4 then atttypmod - 4 end
  from unnest(tables) with ordinality as sources (source, place)
  join pg_attribute on attrelid = source and attname = named and attnum > 0 and not attisdropped
  order by place
  limit 1
);
comment on function tsql.length_of(regclass[], name) is
  'The length of a column of the first of these tables that has it, if it is a text of a length.';
create or replace function tsql.within(value text, length integer) returns text
language sql immutable parallel safe
return case when length is null then value else tsql.cut(value, length) end;
create or replace function tsql.within(value anyelement, length integer) returns anyelement
language sql immutable parallel safe as $$ select value $$;
comment on function tsql.within(text, integer) is 'A text cut to a length, null: any. Values of other types are unchanged.';
create or replace function tsql.is_long(tables regclass[], named name) returns boolean
language sql stable parallel safe
return coalesce((
  select atttypid = 'text'::regtype or atttypid = 'varchar'::regtype and atttypmod = -1
  from unnest(tables) with ordinality as sources (source, place)
  join pg_attribute on attrelid = source and attname = named and attnum > 0 and not attisdropped
  order by place
  limit 1
), false);
comment on function tsql.is_long(regclass[], name) is
  'Whether a column of the first of these tables that has it is a text of any length: varchar(max), nvarchar(max), text, ntext.';
create or replace function tsql.text_of_digits(value anyelement, style integer, digits integer) returns text
language sql immutable parallel safe as $$ select null::text $$;
comment on function tsql.text_of_digits(anyelement, integer, integer) is
  'A datetime2 or time with the given number of decimals in a style of CONVERT; null for other types, and without decimals.';
create or replace function tsql.text_of_digits(value timestamp, style integer, digits integer) returns text
language sql immutable strict parallel safe return tsql.datetime2_text(value, style, digits);
create or replace function tsql.text_of_digits(value time, style integer, digits integer) returns text
language sql immutable strict parallel safe return tsql.time_text(value, style, digits);
do $$
declare
  source text;
begin
  -- PostgreSQL would convert these to timestamps and times
  foreach source in array array['date', 'timestamptz', 'interval', 'timetz'] loop
    execute format('create or replace function tsql.text_of_digits(value %s, style integer, digits integer) returns text'
      ' language sql immutable parallel safe return null::text', source);
  end loop;
end
$$;

create or replace function tsql.too_long(value text, length integer, type_ text) returns text
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > length then
    case
      when type_ like 'tsql.%money' then
        perform tsql.fail(234, 'There is insufficient result space to convert a money value to varchar.');
      when type_ in ('real', 'double precision', 'float') then
        perform tsql.fail(232, format('Arithmetic overflow error for type varchar, value = %s.', value));
      when type_ = 'uuid' then
        perform tsql.fail(8170, 'Insufficient result space to convert uniqueidentifier value to char.');
      else
        perform tsql.fail(8115, format('Arithmetic overflow error converting %s to data type varchar.',
          case type_ when 'bigint' then 'expression' else type_ end));
    end case;
  end if;
  return value;
end
$$;

-- conversions to texts of limited length: longer texts and times are cut, longer whole numbers become *
do $$
declare
  source text;
  body text;
begin
  foreach source in array array['text', 'character', 'timestamp', 'timestamptz', 'date', 'time', 'bytea', 'xml'] loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer) returns text'
      ' language sql %2$s parallel safe return tsql.cut(tsql.text_of(value), length)',
      source, case source when 'timestamptz' then 'stable' else 'immutable' end);
  end loop;
  foreach source in array array['boolean', 'smallint', 'integer'] loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer) returns text'
      ' language sql immutable parallel safe return case when pg_catalog.length(tsql.text_of(value)) > length'
      ' then ''*'' else tsql.text_of(value) end', source);
  end loop;
  foreach source in array
    array['bigint', 'numeric', 'tsql.money', 'tsql.smallmoney', 'real', 'double precision', 'uuid'] loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer) returns text'
      ' language sql immutable parallel safe return tsql.too_long(tsql.text_of(value), length, %1$L)', source);
  end loop;
  -- in nvarchar a longer number is an error and not * ("CAST and CONVERT", "Truncating and rounding results")
  foreach source in array array['boolean', 'smallint', 'integer'] loop
    execute format(
      'create or replace function tsql.to_nvarchar(value %1$s, length integer) returns text'
      ' language sql immutable parallel safe return tsql.too_long(tsql.text_of(value), length, ''expression'')', source);
  end loop;
  -- with a style
  for source, body in select * from (values
    ('timestamp', 'tsql.datetime_text(value, style)'),
    -- a timestamp with time zone, which clients receive as a datetime2
    ('timestamptz', 'case when style in (21, 25, 121, 126, 127) then tsql.datetime2_text(value::timestamp, style, 6)'
      ' else tsql.datetime_text(tsql.moment(value), style) end'),
    ('date', 'tsql.date_text(value, style)'),
    ('time', 'tsql.time_text(value, style, 7)')
  ) as times (type, text) loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text'
      ' language sql %2$s parallel safe return pg_catalog.left(%3$s, coalesce(length, 8000))',
      source, case source when 'timestamptz' then 'stable' else 'immutable' end, body);
  end loop;
  foreach source in array array['text', 'character', 'boolean', 'smallint', 'integer', 'bigint', 'numeric', 'uuid'] loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text'
      ' language sql immutable parallel safe return tsql.to_varchar(value, coalesce(length, 8000))', source);
  end loop;
  foreach source in array array['tsql.money', 'tsql.smallmoney'] loop
    execute format(
      'create or replace function tsql.to_varchar(value %1$s, length integer, style integer) returns text'
      ' language sql immutable parallel safe'
      ' return tsql.too_long(tsql.money_text(value, style), coalesce(length, 8000), %1$L)', source);
  end loop;
end
$$;
create or replace function tsql.to_varchar(value real, length integer, style integer) returns text
language sql immutable parallel safe
return tsql.too_long(tsql.float_text(case style when 0 then value::text::double precision
  else value::double precision end, style), coalesce(length, 8000), 'real');
create or replace function tsql.to_varchar(value double precision, length integer, style integer) returns text
language sql immutable parallel safe
return tsql.too_long(tsql.float_text(value, style), coalesce(length, 8000), 'float');
create or replace function tsql.to_varchar(value bytea, length integer, style integer) returns text
language plpgsql immutable parallel safe
as $$
begin
  -- the others are translated by the compiler
  if style <> 0 then
    perform tsql.fail(281, format('%s is not a valid style number when converting from varbinary to a character string.',
      style));
  end if;
  return tsql.to_varchar(value, coalesce(length, 8000));
end
$$;

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
  for place in greatest(length(value) - 8, 0) .. length(value) - 1 loop
    number := number * 256 + get_byte(value, place);
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
