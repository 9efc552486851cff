-- Lengths of texts and places in them are counted in units of UTF-16, as in SQL Server under a collation without
-- supplementary characters: a character beyond U+FFFF is a surrogate pair, two units ("nchar and nvarchar": n is in
-- byte-pairs; "Collation and Unicode support", "Supplementary characters": LEN, CHARINDEX and PATINDEX count a pair as
-- two, LEFT, REVERSE, RIGHT, SUBSTRING and STUFF may split it). PostgreSQL counts characters. It has no half of a pair:
-- what would split one is refused.

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
comment on function tsql.unit_of(text, integer) is 'The unit with which the character at a place begins; 0 of none.';

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
comment on function tsql.filled_pairs(text) is 'With a character for each unit: one is put in behind every pair.';

create or replace function tsql.without_filling(filled text) returns text
language sql immutable parallel safe
return regexp_replace(filled collate "C", '([\U00010000-\U0010ffff])\uffff', '\1', 'g');

create or replace function tsql.place_of(value text, unit integer) returns integer
language sql immutable parallel safe
return case when unit > 1 and tsql.has_pairs(value)
  then length(tsql.without_filling(pg_catalog.left(tsql.filled_pairs(value), unit - 1))) + 1 else unit end;
comment on function tsql.place_of(text, integer) is 'Of the first character that begins with this unit or later.';

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
  'So many units from one on, the first being 1. Error (0A000): the part begins or ends inside a pair.';

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
$$A text on its way into a column of so many units, which PostgreSQL would let in with as many characters: blanks at its end are
cut. A length below 0: any. Error (22001): it is longer. In SQL it would use its value more than once, and PostgreSQL would not
inline its callers.$$;
