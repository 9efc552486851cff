-- Texts: SQL Server, "String functions". Lengths and positions are in UTF-16 units (texts/units.sql).

create or replace function tsql.len(value text) returns integer
language sql immutable parallel safe return tsql.units(rtrim(value, ' '));
create or replace function tsql.len(value bytea) returns integer
language plpgsql immutable strict parallel safe
as $$
begin
  if octet_length(value) > 0 and get_byte(value, octet_length(value) - 1) = 32 then
    perform tsql.fail(8114, 'len: whether bytes that end in 0x20 count as a text that ends in a blank is not documented: '
      'use datalength.');
  end if;
  return octet_length(value);
end
$$;
create or replace function tsql.len(value anyelement) returns integer
language sql stable strict parallel safe
as $$ select tsql.len(tsql.text_of(value)) $$;
create or replace function tsql.char_length(value text) returns integer
language sql immutable parallel safe return tsql.units(value);

-- of binary (ASE): the same datatype
call tsql.make_each(array[
  ['left(value text, length integer)', 'text', '536, ''Invalid length parameter passed to the left function.''',
    'tsql.part(value, 1, length)'],
  ['right(value text, length integer)', 'text', '536, ''Invalid length parameter passed to the right function.''',
    'case when tsql.has_pairs(value) then tsql.part(value, greatest(tsql.units(value) - length + 1, 1), length)
    else pg_catalog.right(value, length) end'],
  ['right(value bytea, length integer)', 'bytea', '536, ''Invalid length parameter passed to the right function.''',
    'substring(value from greatest(octet_length(value) - length + 1, 1))'],
  -- positions before the first count too
  ['substring(value text, start_ integer, length integer)', 'text',
    '537, ''Invalid length parameter passed to the LEFT or SUBSTRING function.''', 'tsql.part(value, greatest(start_, 1),
    greatest(least(start_::bigint + length, 2147483647) - greatest(start_, 1), 0)::integer)'],
  ['substring(value bytea, start_ integer, length integer)', 'bytea',
    '537, ''Invalid length parameter passed to the LEFT or SUBSTRING function.''', 'substr(value, greatest(start_, 1),
    greatest(least(start_::bigint + length, 2147483647) - greatest(start_, 1), 0)::integer)']
], $definition$create or replace function tsql.%s returns %s
language plpgsql immutable strict parallel safe
as $$
begin
  if length < 0 then
    perform tsql.fail(%s);
  end if;
  return %s;
end
$$$definition$);

create or replace function tsql.charindex(wanted text, value text) returns integer
language sql immutable strict parallel safe
return case wanted when '' then 0 else tsql.unit_of(value, strpos(value, wanted)) end;
create or replace function tsql.charindex(wanted text, value text, start_ integer) returns integer
language sql immutable strict parallel safe
return (
  with searched (position) as (select tsql.position_of(value, greatest(start_, 1))),
  found (position) as (select strpos(substr(value, position), wanted) from searched)
  select case when wanted = '' or found.position = 0 then 0
    else tsql.unit_of(value, found.position + searched.position - 1) end
  from searched, found
);

create or replace function tsql.stuff(value text, start_ integer, length integer, put text) returns text
language sql immutable parallel safe
return case when start_ between 1 and tsql.units(value) and length >= 0
  then tsql.part(value, 1, start_ - 1) || coalesce(put, '')
    || tsql.part(value, least(start_::bigint + length, 2147483647)::integer, 2147483647) end;
comment on function tsql.stuff(text, integer, integer, text) is
  'Null when the position is outside the text or the length negative; a null put is none.';

create or replace function tsql.replicate(value text, number integer) returns text
language sql immutable strict parallel safe
return case when number >= 0 then tsql.cut(repeat(value, least(number, 8000)), greatest(8000, tsql.units(value))) end;
create or replace function tsql.replicate_max(value text, number integer) returns text
language sql immutable strict parallel safe return case when number >= 0 then repeat(value, number) end;
comment on function tsql.replicate_max(text, integer) is 'The same for a varchar(max), which is not cut.';
create or replace function tsql.trim(value text, characters text) returns text
language sql immutable strict parallel safe return btrim(value, characters);
create or replace function tsql.space(number integer) returns text
language sql immutable strict parallel safe return case when number >= 0 then repeat(' ', least(number, 8000)) end;
create or replace function tsql.reverse(value text) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if tsql.has_pairs(value) then
    perform tsql.refuse_half();
  end if;
  return pg_catalog.reverse(value);
end
$$;
call tsql.make_functions('immutable strict parallel safe', array[
  ['upper(value text)', 'text', 'pg_catalog.upper(value)'],
  ['lower(value text)', 'text', 'pg_catalog.lower(value)'],
  ['ltrim(value text)', 'text', 'pg_catalog.ltrim(value, '' '')'],
  ['rtrim(value text)', 'text', 'pg_catalog.rtrim(value, '' '')'],
  ['replace(value text, old text, new text)', 'text', 'pg_catalog.replace(value, old, new)']]);
create or replace function tsql.str_replace(value text, old text, new text) returns text
language sql immutable parallel safe
return case when value is not null and old is not null
  then pg_catalog.replace(value, old, coalesce(new, '')) end;

create or replace function tsql.aggregated_text(value text, length integer) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if octet_length(value) > length and tsql.units(value) > length then
    perform tsql.fail(9829, 'STRING_AGG aggregation result exceeded the limit of 8000 bytes. Use LOB types to avoid '
      'result truncation.');
  end if;
  return value;
end
$$;

create or replace function tsql.quotename(value text, quote text default '[') returns text
language sql immutable strict parallel safe
return case
  when tsql.units(value) > 128 then null
  when quote in ('[', ']') then '[' || pg_catalog.replace(value, ']', ']]') || ']'
  when quote in ('(', ')') then '(' || pg_catalog.replace(value, ')', '))') || ')'
  when quote in ('<', '>') then '<' || pg_catalog.replace(value, '>', '>>') || '>'
  when quote in ('{', '}') then '{' || pg_catalog.replace(value, '}', '}}') || '}'
  when quote in ('`', '"', '''') then quote || pg_catalog.replace(value, quote, quote || quote) || quote
end;

create or replace function tsql.ascii(value text) returns integer
language plpgsql immutable strict parallel safe
as $$
begin
  if value = '' then
    return null;
  end if;
  if pg_catalog.ascii(value) > 127 then
    perform tsql.fail(8114, 'ascii: characters beyond ASCII have no code here; unicode gives theirs.');
  end if;
  return pg_catalog.ascii(value);
end
$$;
create or replace function tsql.unicode(value text) returns integer
language sql immutable parallel safe
return case when tsql.has_pairs(pg_catalog.left(value, 1)) then 55296 + ((pg_catalog.ascii(value) - 65536) >> 10)
  else nullif(pg_catalog.ascii(value), 0) end;
comment on function tsql.unicode(text) is 'The number of the first unit: 0 to 65535 ("UNICODE").';
create or replace function tsql.uscalar(value text) returns integer
language sql immutable strict parallel safe
return nullif(pg_catalog.ascii(value), 0);
comment on function tsql.uscalar(text) is 'ASE: the Unicode number of the first character.';
create or replace function tsql.uhighsurr(value text, unit integer) returns integer
language sql immutable strict parallel safe
return tsql.has_pairs(substr(tsql.filled_pairs(value), unit, 1))::integer;
create or replace function tsql.ulowsurr(value text, unit integer) returns integer
language sql immutable strict parallel safe
return tsql.has_pairs(substr(tsql.filled_pairs(value), unit - 1, 1))::integer;
create or replace function tsql.char(code integer) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if code = 0 or code between 128 and 255 then
    perform tsql.fail(8114, 'char: 1 to 127 are characters here; nchar gives others.');
  end if;
  return case when code between 1 and 127 then chr(code) end;
end
$$;
create or replace function tsql.nchar(code integer) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if code between 55296 and 57343 then
    perform tsql.refuse_half();
  end if;
  return case when code between 1 and 65535 then chr(code) end;
end
$$;

create or replace function tsql.str(value double precision, length integer, decimals integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  kept integer := least(decimals, 16);
  shown text;
begin
  if length < 1 or length > 8000 or decimals < 0 then
    return null;
  end if;
  shown := trunc(abs(value)::text::numeric)::text;
  -- decimals are dropped in favour of the integer part
  kept := greatest(least(kept, length - pg_catalog.length(shown) - case when value < 0 then 2 else 1 end), 0);
  shown := round(value::text::numeric, kept)::text;
  if pg_catalog.length(shown) > length and kept > 0 then
    shown := round(value::text::numeric, kept - 1)::text;
  end if;
  return case when pg_catalog.length(shown) > length then repeat('*', length) else lpad(shown, length) end;
end
$$;

create or replace function tsql.datalength(value text) returns integer
language plpgsql immutable strict parallel safe
as $$
begin
  if octet_length(value) <> length(value) then
    perform tsql.fail(8114, 'datalength: how many bytes a character beyond ASCII has, depends on the client''s charset.');
  end if;
  return octet_length(value);
end
$$;
create or replace function tsql.datalength_wide(value text) returns integer
language sql immutable parallel safe
return 2 * tsql.units(value);
comment on function tsql.datalength_wide(text) is 'The same for a national text: two bytes per UTF-16 unit.';
create or replace function tsql.datalength(value character) returns integer
language sql immutable strict parallel safe return tsql.datalength(tsql.padded(value));
call tsql.make_each(array[['bytea', 'octet_length(value)'], ['tsql.money', '8'], ['tsql.smallmoney', '4'], ['tsql.tinyint', '1'],
  ['tsql.smalldatetime', '4'], ['boolean', '1'], ['smallint', '2'], ['integer', '4'], ['bigint', '8'], ['real', '4'],
  ['double precision', '8'], ['timestamp', '8'], ['timestamptz', '8'], ['date', '3'], ['time', '5'], ['uuid', '16']
], 'create or replace function tsql.datalength(value %s) returns integer language sql immutable strict parallel safe return %s');

create or replace function tsql.decimal_size(value numeric, scale integer) returns integer
language sql immutable strict parallel safe
return case width_bucket(abs(value) * 10::numeric ^ scale, array[2::numeric ^ 32, 2::numeric ^ 64, 2::numeric ^ 96])
  when 0 then 5 when 1 then 9 when 2 then 13 else 17 end;
comment on function tsql.decimal_size(numeric, integer) is 'The bytes in which SQL Server stores a decimal of this scale.';
create or replace function tsql.datalength(value numeric) returns integer
language sql immutable strict parallel safe return tsql.decimal_size(value, scale(value));

create or replace function tsql.pattern_body(pattern text, escape_ text) returns text
language plpgsql immutable parallel safe
as $$
declare
  body text := '';
  at integer := 1;
  close integer;
  members text;
  member text;
  c text;
begin
  if escape_ is not null and length(escape_) <> 1 then
    perform tsql.fail(506, format('The invalid escape character "%s" was specified in a LIKE predicate.', escape_));
  end if;
  while at <= length(pattern) loop
    c := substr(pattern, at, 1);
    if c = escape_ then
      at := at + 1;
      if at > length(pattern) then
        return null;
      end if;
      body := body || tsql.quoted_character(substr(pattern, at, 1));
    elsif c = '%' then
      body := body || '.*';
    elsif c = '_' then
      body := body || '.';
    elsif c = '[' then
      close := at + 1;
      if substr(pattern, close, 1) = '^' then
        close := close + 1;
      end if;
      -- a class ends with the next ]; without one nothing matches
      while close <= length(pattern) and substr(pattern, close, 1) <> ']' loop
        if substr(pattern, close, 1) = escape_ then
          close := close + 1;
        end if;
        close := close + 1;
      end loop;
      if close > length(pattern) then
        return null;
      end if;
      members := substr(pattern, at + 1, close - at - 1);
      body := body || tsql.class_body(members, escape_);
      at := close;
    else
      body := body || tsql.quoted_character(c);
    end if;
    at := at + 1;
  end loop;
  return body;
end
$$;
comment on function tsql.pattern_body(text, text) is
  'A pattern of LIKE as a regular expression without its ends; null for one that matches nothing.';

create or replace function tsql.quoted_character(c text) returns text
language sql immutable strict parallel safe
return case when c ~ '[[:alnum:]]' then c else '\U' || lpad(to_hex(pg_catalog.ascii(c)), 8, '0') end;

create or replace function tsql.class_body(members text, escape_ text) returns text
language plpgsql immutable parallel safe
as $$
declare
  inside text := '';
  negated boolean := left(members, 1) = '^';
  at integer := case when left(members, 1) = '^' then 2 else 1 end;
  first text;
  last text;
begin
  while at <= length(members) loop
    first := substr(members, at, 1);
    if first = escape_ then
      at := at + 1;
      first := substr(members, at, 1);
    end if;
    if substr(members, at + 1, 1) = '-' and at + 2 <= length(members) then
      last := substr(members, at + 2, 1);
      -- an inverted range is empty
      if first <= last collate "C" then
        inside := inside || tsql.quoted_character(first) || '-' || tsql.quoted_character(last);
      end if;
      at := at + 3;
    else
      inside := inside || tsql.quoted_character(first);
      at := at + 1;
    end if;
  end loop;
  if inside = '' then
    return case when negated then '.' else '(?!)' end;
  end if;
  return '[' || case when negated then '^' else '' end || inside || ']';
end
$$;

create or replace function tsql.like_expression(pattern text, escape_ text) returns text
language sql immutable parallel safe
return coalesce('^(?:' || tsql.pattern_body(pattern, escape_) || ') *$', '(?!)');
comment on function tsql.like_expression(text, text) is
  'Blanks at the end of the value are passed over, those of the pattern count (SQL Server, "LIKE").';

create or replace function tsql.is_like(value text, pattern text, escape_ text) returns boolean
language sql immutable parallel safe
return case when pattern is not null then value collate "C" ~ tsql.like_expression(pattern, escape_) end;

create or replace function tsql.is_wide_like(value text, pattern text, escape_ text) returns boolean
language sql immutable parallel safe
return case when pattern is not null
  then value collate "C" ~ coalesce('^(?:' || tsql.pattern_body(pattern, escape_) || ')$', '(?!)') end;
comment on function tsql.is_wide_like(text, text, text) is
  'LIKE where one of the texts is national: blanks at the end of the value count too (SQL Server, "LIKE").';

-- PostgreSQL removes the blanks of a char when it converts it to text, and those of a pattern are significant
call tsql.make_each(array[
  ['is_like(value text, pattern character', 'is_like(value, tsql.padded(pattern)'],
  ['is_wide_like(value character, pattern text', 'is_wide_like(tsql.padded(value), pattern'],
  ['is_wide_like(value text, pattern character', 'is_wide_like(value, tsql.padded(pattern)'],
  ['is_wide_like(value character, pattern character', 'is_wide_like(tsql.padded(value), tsql.padded(pattern)']
], $$create or replace function tsql.%s, escape_ text) returns boolean
language sql immutable parallel safe return tsql.%s, escape_)$$);

create or replace function tsql.patindex(pattern text, value text) returns integer
language plpgsql immutable strict parallel safe
as $$
declare
  body text;
begin
  if pattern = '' then
    return 0;
  end if;
  body := tsql.pattern_body(
    case when pattern like '\%%' then regexp_replace(pattern, '^%+', '') else pattern end, null);
  if body is null then
    return 0;
  end if;
  if body = '' then
    return case when pattern like '\%%' then least(1, length(value)) else 0 end;
  end if;
  return tsql.unit_of(value,
    regexp_instr(value collate "C", case when pattern like '\%%' then '' else '^' end || '(?:' || body || ') *$'));
end
$$;

-- regexp_instr finds the leftmost match: anything may follow a last %
create or replace function tsql.isnumeric(value text) returns integer
language sql immutable parallel safe
return case
  -- tabs and line breaks are a number alone and before digits, not after them
  when value ~ '^\s+$' and value !~ '^ +$' then 1
  when value ~ ('^\s*[-+]?[' || tsql.currencies() || ']?([0-9][0-9,]*\.?[0-9]*|\.[0-9]+)([eEdD][-+]?[0-9]+)? *$') then 1
  -- blanks are allowed around a sign and a currency sign, as in a text converted to int or money
  when value ~ ('^\s*([-+] *[' || tsql.currencies() || ']?|[' || tsql.currencies()
    || ']? *[-+]?) *([0-9][0-9,]*\.?[0-9]*|\.[0-9]+) *$') then 1
  -- a sign, a currency sign or a period alone counts too
  when value ~ '^ *[-+] *$' or value in ('.', ',') or length(value) = 1 and strpos(tsql.currencies(), value) > 0 then 1
  else 0 end;
call tsql.make_each('{boolean,smallint,integer,bigint,numeric,real,double precision}', $$
create or replace function tsql.isnumeric(value %s) returns integer
language sql immutable parallel safe return case when value is null then 0 else 1 end$$);
