-- Splitting of texts, SOUNDEX, bytes written as digits.

create or replace function tsql.translate(value text, from_ text, to_ text) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if length(from_) <> length(to_) then
    perform tsql.fail(9828,
      'The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.');
  end if;
  return pg_catalog.translate(value, from_, to_);
end
$$;

-- "GENERATE_SERIES": its column is `value`; without a step it descends to a smaller end
call tsql.make_each('{{smallint,integer},{integer,integer},{bigint,bigint},{numeric,numeric}}', $$
create or replace function tsql.generate_series(start %1$s, stop %1$s, step %1$s) returns table ("value" %1$s)
language sql immutable parallel safe
as 'select given.number::%1$s from pg_catalog.generate_series(start::%2$s, stop::%2$s, case when step = 0 then tsql.refused('
  '4199, ''Argument value 0 is invalid for argument 3 of generate_series function.'', null::%2$s) else step::%2$s end)'
  ' as given (number)';
create or replace function tsql.generate_series(start %1$s, stop %1$s) returns table ("value" %1$s)
language sql immutable parallel safe
as 'select * from tsql.generate_series(start, stop, (case when start <= stop then 1 else -1 end)::%1$s)'$$);

create or replace function tsql.string_split(whole text, separator text) returns table ("value" text)
language plpgsql immutable parallel safe
as $$
begin
  if tsql.units(separator) is distinct from 1 then
    perform tsql.fail(214, 'Procedure expects parameter ''separator'' of type ''nchar(1)/nvarchar(1)''.');
  end if;
  -- PostgreSQL has no part of an empty text
  return query select string_to_table(whole, separator) union all select '' where whole = '';
end
$$;

create or replace function tsql.string_split_with_ordinal(whole text, separator text)
returns table ("value" text, "ordinal" bigint)
language sql immutable parallel safe
as $$ select * from tsql.string_split(whole, separator) with ordinality $$;
comment on function tsql.string_split_with_ordinal(text, text) is 'The parts of a text and the position of each, from 1.';

create or replace function tsql.soundex(value text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  codes constant text := '01230120022455012623010202';  -- of a to z: 0 for vowels and h, w, y
  letters text := upper(substring(value from '^\s*([A-Za-z]*)'));
  code text;
  before text;
  found text := left(letters, 1);
begin
  if letters = '' then
    return '0000';
  end if;
  before := substr(codes, ascii(letters) - 64, 1);
  for position in 2 .. length(letters) loop
    code := substr(codes, ascii(substr(letters, position, 1)) - 64, 1);
    if code <> '0' and code <> before then
      found := found || code;
    end if;
    -- h and w do not separate letters that sound alike
    if substr(letters, position, 1) not in ('H', 'W') then
      before := code;
    end if;
    exit when length(found) = 4;
  end loop;
  return rpad(found, 4, '0');
end
$$;
comment on function tsql.soundex(text) is 'A letter and three digits (SQL Server: SOUNDEX, at compatibility level 110).';

create or replace function tsql.difference(one text, other text) returns integer
language sql immutable strict parallel safe
return (select count(*)::integer from generate_series(1, 4) as position
        where substr(tsql.soundex(one), position, 1) = substr(tsql.soundex(other), position, 1));

create or replace function tsql.bytes_of_digits(digits text, style integer) returns bytea
language plpgsql immutable strict parallel safe
as $$
begin
  if style = 1 and left(digits, 2) not in ('0x', '0X') then
    raise invalid_text_representation;
  end if;
  -- an odd number of digits does not form bytes
  return decode(case style when 1 then substr(digits, 3) else digits end, 'hex');
exception when invalid_text_representation or invalid_parameter_value then
  perform tsql.fail(8114, 'Error converting data type varchar to varbinary.');
end
$$;
comment on function tsql.bytes_of_digits(text, integer) is 'CONVERT to bytes: style 1 with 0x before the digits, style 2 without.';

-- texts in XML: for xml path ('')
create or replace function tsql.xml_text(value text) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if value ~ '[\x01-\x08\x0b\x0c\x0e-\x1f]' then
    raise exception using errcode = '0A000',
      message = 'A text with a control character is not supported in for xml: XML has no such characters.';
  end if;
  return value;
end
$$;
comment on function tsql.xml_text(text) is 'A value as FOR XML writes it, without references for special characters.';
call tsql.make_each(array[['smallint', 'value::text'], ['integer', 'value::text'], ['bigint', 'value::text'], ['numeric', 'value::text'],
  ['uuid', 'upper(value::text)']
], 'create or replace function tsql.xml_text(value %s) returns text language sql immutable strict parallel safe return %s');
call tsql.make_each('{boolean,real,double precision,character,bytea,date,time,timestamp,timestamptz,tsql.datetimeoffset,'
  'tsql.sql_variant,xml}', $$
create or replace function tsql.xml_text(value %1$s) returns text language plpgsql immutable strict parallel safe
as 'begin raise exception using errcode = ''0A000'','
  ' message = ''A value of type %1$s is not supported in for xml: convert it to varchar.''; end'$$);

create or replace function tsql.xml_written(content text) returns text
language sql immutable strict parallel safe
return replace(replace(replace(replace(content, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), chr(13), '&#x0D;');
comment on function tsql.xml_written(text) is 'A text escaped for XML, between elements.';

create or replace function tsql.xml_joined(content text, rows_ bigint) returns text
language plpgsql immutable parallel safe
as $$
begin
  if content is null and rows_ > 0 then
    raise exception using errcode = '0A000',
      message = 'for xml of rows that have no value but NULL is not supported: give one by isnull.';
  end if;
  return content;
end
$$;
comment on function tsql.xml_joined(text, bigint) is 'The texts of all rows; null without rows.';
