-- Lengths of texts and positions in them are counted in UTF-16 units, as in SQL Server under a collation without
-- supplementary characters: a character beyond U+FFFF is a surrogate pair, two units ("nchar and nvarchar": n is in
-- byte-pairs; "Collation and Unicode support", "Supplementary characters": LEN, CHARINDEX and PATINDEX count a pair as
-- two, LEFT, REVERSE, RIGHT, SUBSTRING and STUFF may split it). PostgreSQL counts characters and cannot store half a
-- pair: an operation that would split a pair is refused.

create or replace function tsql.has_pairs(value text) returns boolean
language sql immutable parallel safe
return octet_length(value) > length(value) and value collate "C" ~ '[\U00010000-\U0010ffff]';

create or replace function tsql.units(value text) returns integer
language sql immutable parallel safe
return length(value) + case when tsql.has_pairs(value)
  then length(regexp_replace(value collate "C", '[^\U00010000-\U0010ffff]', '', 'g')) else 0 end;

create or replace function tsql.unit_of(value text, place integer) returns integer
language sql immutable parallel safe
return case when place > 1 and tsql.has_pairs(value) then tsql.units(pg_catalog.left(value, place - 1)) + 1 else place end;
comment on function tsql.unit_of(text, integer) is 'The first unit of the character at a position; 0 without a character.';

create or replace function tsql.refuse_half() returns void
language plpgsql immutable
as $$
begin
  raise exception using errcode = '0A000', message =
    'A character beyond U+FFFF would be cut in two: it is a surrogate pair, and ringlog has no half of one.';
end
$$;

create or replace function tsql.filled_pairs(value text) returns text
language sql immutable parallel safe
return regexp_replace(value collate "C", '([\U00010000-\U0010ffff])', '\1' || chr(65535), 'g');
comment on function tsql.filled_pairs(text) is 'The text with a filler after each pair: one character for each unit.';

create or replace function tsql.without_filling(filled text) returns text
language sql immutable parallel safe
return regexp_replace(filled collate "C", '([\U00010000-\U0010ffff])\uffff', '\1', 'g');

create or replace function tsql.position_of(value text, unit integer) returns integer
language sql immutable parallel safe
return case when unit > 1 and tsql.has_pairs(value)
  then length(tsql.without_filling(pg_catalog.left(tsql.filled_pairs(value), unit - 1))) + 1 else unit end;
comment on function tsql.position_of(text, integer) is 'The position of the first character that begins at this unit or later.';

create or replace function tsql.part_with_pairs(value text, start_ integer, length integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  filled text := tsql.filled_pairs(value);
  part text := substr(filled, start_, length);
begin
  if part <> '' and (tsql.has_pairs(substr(filled, start_ - 1, 1)) or tsql.has_pairs(pg_catalog.right(part, 1))) then
    perform tsql.refuse_half();
  end if;
  return tsql.without_filling(part);
end
$$;

create or replace function tsql.part(value text, start_ integer, length integer) returns text
language sql immutable parallel safe
return case when tsql.has_pairs(value) then tsql.part_with_pairs(value, start_, length)
  else substr(value, start_, length) end;
comment on function tsql.part(text, integer, integer) is
  'A number of units from a given one on, counted from 1. Error (0A000): the part begins or ends inside a pair.';

create or replace function tsql.cut(value text, length integer) returns text
language sql immutable parallel safe
return case when octet_length(value) <= length then value else tsql.part(value, 1, length) end;

create or replace function tsql.fitting(value text, length integer) returns text
language plpgsql immutable strict parallel safe
as $$
begin
  if length < 0 or octet_length(value) <= length or not tsql.has_pairs(value) then
    return value;
  elsif tsql.units(rtrim(value, ' ')) > length then
    raise exception using errcode = 'string_data_right_truncation',
      message = format('value too long for type character varying(%s)', length);
  end if;
  return tsql.cut(value, length);
end
$$;
comment on function tsql.fitting(text, integer) is
$$A text for a column of `length` units, without blanks at its end beyond that; PostgreSQL would count characters. A length
below 0: any. Error (22001): the text is longer. Not a function in SQL, which would use its argument more than once, so that
PostgreSQL would not inline its callers.$$;
