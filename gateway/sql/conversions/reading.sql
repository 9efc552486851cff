-- Texts read as values of other types, and texts of floats and money.

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

create or replace function tsql.binary_digits(value double precision) returns numeric
language plpgsql immutable strict parallel safe
as $$
declare
  bits constant bigint := ('x' || encode(float8send(value), 'hex'))::bit(64)::bigint;
  exponent constant bigint := greatest((bits >> 52) & 2047, 1) - 1075;
  mantissa constant numeric := (bits & 4503599627370495) + case when (bits >> 52) & 2047 > 0 then 4503599627370496 else 0 end;
begin
  return case when exponent < 0 then mantissa * 5::numeric ^ (-exponent)::numeric * ('1e' || exponent)::numeric
    else mantissa * 2::numeric ^ exponent::numeric end;
end
$$;
comment on function tsql.binary_digits(double precision) is 'All decimal digits of a positive float: its mantissa and power of two.';

create or replace function tsql.float_text(value double precision, style integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  digits integer := case style when 0 then 6 when 1 then 8 when 2 then 16 when 3 then 17 end;
  -- zero has a sign too, which numeric does not keep
  sign text := case when value::text like '-%' then '-' else '' end;
  shown text;
  mantissa text;
  exponent integer;
begin
  if digits is null then
    perform tsql.fail(281, style || ' is not a valid style number when converting from float to a character string.');
  end if;
  if value = 0 and style = 0 then
    return sign || '0';
  end if;
  value := abs(value);
  -- d.ddde+xx with so many digits, rounded exactly
  shown := to_char(case
    when style > 0 and value < 'infinity' then tsql.binary_digits(value)
    -- more digits than numeric's cast keeps
    when value::numeric::double precision <> value then value::text::numeric
    else value::numeric
  end, '9.' || repeat('9', digits - 1) || 'EEEE');
  mantissa := sign || btrim(split_part(shown, 'e', 1));
  exponent := split_part(shown, 'e', 2)::integer;
  if style > 0 then
    return mantissa || 'e' || case when exponent < 0 then '-' else '+' end || lpad(abs(exponent)::text, 3, '0');
  end if;
  if exponent < -4 or exponent >= 6 then
    mantissa := case when mantissa like '%.%' then rtrim(rtrim(mantissa, '0'), '.') else mantissa end;
    return mantissa || 'e' || case when exponent < 0 then '-' else '+' end || lpad(abs(exponent)::text, 3, '0');
  end if;
  shown := sign || round(value::text::numeric, 5 - exponent)::text;
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
