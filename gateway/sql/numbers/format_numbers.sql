-- FORMAT of numbers, which SQL Server delegates to .NET (.NET documentation, "Standard numeric format strings" and
-- "Custom numeric format strings"), in the culture en-US. A format that .NET refuses returns null (SQL Server,
-- "FORMAT").

create or replace function tsql.check_culture(culture text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if culture is null or lower(culture) <> 'en-us' then
    perform tsql.fail(9818, format('The culture parameter ''%s'' provided in the function call is not supported.', culture));
  end if;
end
$$;
comment on function tsql.check_culture(text) is 'Checks the culture of FORMAT. Error: another one than en-US (9818).';

create or replace function tsql.zero_padded(digits text, width integer) returns text
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$ select lpad(digits, greatest(width, length(digits)), '0') $$;
comment on function tsql.zero_padded(text, integer) is 'Digits with zeros before them, up to the given width.';

create or replace function tsql.format_fixed(magnitude numeric, digits integer, grouped boolean) returns text
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
  select case
    when not grouped then rounded
    else reverse(regexp_replace(reverse(split_part(rounded, '.', 1)), '(\d{3})(?=\d)', '\1,', 'g'))
      || substr(rounded, length(split_part(rounded, '.', 1)) + 1)
  end
  from (select round(magnitude, digits)::text as rounded) as written
$$;
comment on function tsql.format_fixed(numeric, integer, boolean) is
'A number of at least 0 with the given number of decimals, with commas between thousands on request.';

create or replace function tsql.exponent_of(magnitude numeric) returns integer
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
  select case
    when magnitude = 0 then 0
    when magnitude >= 1 then length(trunc(magnitude)::text) - 1
    else -1 - length(substring(magnitude::text from '^0?\.(0*)'))
  end
$$;
comment on function tsql.exponent_of(numeric) is 'The decimal exponent of a number of at least 0, with one digit before the point.';

create or replace function tsql.format_scientific(
  magnitude numeric, digits integer, letter text, places integer, keeps_zeros boolean
) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
declare
  exponent integer := tsql.exponent_of(magnitude);
  mantissa numeric := round(magnitude * ('1e' || -exponent)::numeric, digits);
begin
  if mantissa >= 10 then
    exponent := exponent + 1;
    mantissa := round(mantissa / 10, digits);
  end if;
  if not keeps_zeros then
    mantissa := trim_scale(mantissa);
  end if;
  return mantissa || letter || case when exponent < 0 then '-' else '+' end || tsql.zero_padded(abs(exponent)::text, places);
end
$$;
comment on function tsql.format_scientific(numeric, integer, text, integer, boolean) is
'A number of at least 0 in scientific notation: decimals of the mantissa, E or e, least number of digits of the exponent.';

create or replace function tsql.format_sections(format text) returns text[]
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
declare
  sections text[] := '{""}';
  quote text;
  letter text;
  at integer := 1;
begin
  while at <= length(format) loop
    letter := substr(format, at, 1);
    at := at + 1;
    if quote is not null then
      quote := case when letter <> quote then quote end;
    elsif letter in ('''', '"') then
      quote := letter;
    elsif letter = '\' then
      letter := letter || substr(format, at, 1);
      at := at + 1;
    elsif letter = ';' then
      sections := array_append(sections, '');
      continue;
    end if;
    sections[cardinality(sections)] := sections[cardinality(sections)] || letter;
  end loop;
  return sections;
end
$$;
comment on function tsql.format_sections(text) is
'The sections of a custom numeric format: for positive numbers, for negative ones, for zero; the last two are optional.';

do $$
begin
  if to_regtype('tsql.number_format') is null then
    create type tsql.number_format as (
      places integer, point integer, first_zero integer, last_zero integer, shift integer, is_grouped boolean,
      is_scientific boolean);
    comment on type tsql.number_format is
      'What a section of a custom numeric format asks for: places of digits, those before the point, zeros that are always '
      'written as places from the point, tens to multiply by.';
  end if;
end
$$;

create or replace function tsql.read_number_format(section text) returns tsql.number_format
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
declare
  asked tsql.number_format := (0, null, null, 0, 0, false, false);
  letter text;
  found integer;
  comma_at integer;
  commas integer := 0;
  at integer := 1;
begin
  while at <= length(section) loop
    letter := substr(section, at, 1);
    at := at + 1;
    if letter = '#' then
      asked.places := asked.places + 1;
    elsif letter = '0' then
      asked.first_zero := coalesce(asked.first_zero, asked.places);
      asked.places := asked.places + 1;
      asked.last_zero := asked.places;
    elsif letter = '.' then
      asked.point := coalesce(asked.point, asked.places);
    elsif letter = ',' and asked.places > 0 and asked.point is null then
      -- commas before the decimal point divide by a thousand each, any other comma separates thousands
      if comma_at = asked.places then
        commas := commas + 1;
      else
        asked.is_grouped := asked.is_grouped or comma_at is not null;
        comma_at := asked.places;
        commas := 1;
      end if;
    elsif letter in ('%', '‰') then
      asked.shift := asked.shift + case letter when '%' then 2 else 3 end;
    elsif letter in ('''', '"') then
      found := position(letter in substr(section, at));
      at := case found when 0 then length(section) + 1 else at + found end;
    elsif letter = '\' then
      at := at + 1;
    elsif letter in ('E', 'e') and substr(section, at) ~ '^[+-]?0' then
      at := at + length(substring(substr(section, at) from '^[+-]?0+'));
      asked.is_scientific := true;
    end if;
  end loop;
  asked.point := coalesce(asked.point, asked.places);
  if comma_at = asked.point then
    asked.shift := asked.shift - 3 * commas;
  else
    asked.is_grouped := asked.is_grouped or comma_at is not null;
  end if;
  asked.first_zero := greatest(asked.point - coalesce(asked.first_zero, asked.point), 0);
  asked.last_zero := least(asked.point - asked.last_zero, 0);
  return asked;
end
$$;
comment on function tsql.read_number_format(text) is 'Reads a section of a custom numeric format.';

create or replace function tsql.format_custom(value numeric, format text) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
declare
  sections constant text[] := tsql.format_sections(format);
  which integer := case when value > 0 then 1 when value < 0 then 2 else 3 end;
  is_negative boolean := value < 0;
  magnitude numeric := abs(value);
  section text;
  asked tsql.number_format;
  -- the digits of the number, and how many of them precede the decimal point
  digits text := '';
  before integer := 0;
  exponent integer := 0;
  -- the next place, counted from the point; digits in excess of the places, or places in excess of the digits
  place integer;
  extra integer;
  written text := '';
  has_point boolean := false;
  letter text;
  digit text;
  mark text[];
  found integer;
  at integer := 1;
begin
  loop
    which := case when coalesce(sections[which], '') = '' then 1 else which end;
    section := sections[which];
    asked := tsql.read_number_format(section);
    exit when magnitude = 0;
    exponent := tsql.exponent_of(magnitude);
    digits := round(magnitude * ('1e' || case
      when asked.is_scientific then asked.places - 1 - exponent
      else asked.shift + asked.places - asked.point
    end)::numeric)::text;
    if digits <> '0' then
      before := case when asked.is_scientific then asked.point else length(digits) - (asked.places - asked.point) end;
      exponent := exponent + length(digits) - asked.places + 1 + asked.shift - asked.point;
      exit;
    end if;
    -- a number that rounds to zero uses the section of zero
    magnitude := 0;
    is_negative := false;
    digits := '';
    exponent := 0;
    which := 3;
  end loop;
  digits := rtrim(digits, '0');
  place := greatest(before, asked.point);
  extra := case when asked.is_scientific then 0 else before - asked.point end;
  if is_negative and which = 1 then
    written := '-';
  end if;
  while at <= length(section) loop
    letter := substr(section, at, 1);
    at := at + 1;
    if letter in ('#', '0', '.') then
      while extra > 0 loop
        written := written || case digits when '' then '0' else left(digits, 1) end
          || case when asked.is_grouped and place > 1 and place % 3 = 1 then ',' else '' end;
        digits := substr(digits, 2);
        place := place - 1;
        extra := extra - 1;
      end loop;
    end if;
    if letter in ('#', '0') then
      if extra < 0 then
        extra := extra + 1;
        digit := case when place <= asked.first_zero then '0' else '' end;
      else
        digit := case when digits <> '' then left(digits, 1) when place > asked.last_zero then '0' else '' end;
        digits := substr(digits, 2);
      end if;
      written := written || digit
        || case when digit <> '' and asked.is_grouped and place > 1 and place % 3 = 1 then ',' else '' end;
      place := place - 1;
    elsif letter = '.' then
      if place = 0 and not has_point and (asked.last_zero < 0 or (asked.point < asked.places and digits <> '')) then
        written := written || '.';
        has_point := true;
      end if;
    elsif letter in ('''', '"') then
      found := position(letter in substr(section, at));
      written := written || case found when 0 then substr(section, at) else substr(section, at, found - 1) end;
      at := case found when 0 then length(section) + 1 else at + found end;
    elsif letter = '\' then
      written := written || substr(section, at, 1);
      at := at + 1;
    elsif letter in ('E', 'e') and substr(section, at) ~ '^[+-]?0' then
      mark := regexp_match(substr(section, at), '^([+-]?)(0+)');
      written := written || letter || case when exponent < 0 then '-' when mark[1] = '+' then '+' else '' end
        || tsql.zero_padded(abs(exponent)::text, length(mark[2]));
      at := at + length(mark[1]) + length(mark[2]);
    elsif letter <> ',' then
      written := written || letter;
    end if;
  end loop;
  return written;
end
$$;
comment on function tsql.format_custom(numeric, text) is '.NET: Custom numeric format strings.';

create or replace function tsql.format_number(value numeric, format text, culture text, kind text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  of_format constant text[] := regexp_match(format, '^([A-Za-z])([0-9]{0,2})$');
  magnitude constant numeric := abs(value);
  sign text := case when value < 0 then '-' else '' end;
  letter text;
  digits integer;
  significant integer;
  exact integer;
  exponent integer;
  rounded numeric;
  written text;
begin
  perform tsql.check_culture(culture);
  if value is null or format is null then
    return null;
  end if;
  if of_format is null and format <> '' then
    return tsql.format_custom(value, format);
  end if;
  letter := coalesce(of_format[1], 'G');
  digits := nullif(of_format[2], '')::integer;
  exact := case kind when 'real' then 7 when 'float' then 15 end;
  if exact is not null
    and (upper(letter) = 'R' or upper(letter) = 'G' and digits > exact or upper(letter) = 'E' and digits >= exact)
  then
    perform tsql.fail(102, format('FORMAT of a %s by %s is refused: it has more than the %s digits that are exact.',
      kind, format, exact));
  end if;
  case upper(letter)
    when 'C' then
      written := tsql.format_fixed(magnitude, coalesce(digits, 2), true);
      return case when value < 0 and written ~ '[1-9]' then '($' || written || ')' else '$' || written end;
    when 'F', 'N' then
      written := tsql.format_fixed(magnitude, coalesce(digits, 2), upper(letter) = 'N');
      return case when written ~ '[1-9]' then sign else '' end || written;
    when 'P' then
      written := tsql.format_fixed(magnitude * 100, coalesce(digits, 2), true);
      return case when written ~ '[1-9]' then sign else '' end || written || ' %';
    when 'E' then
      return sign || tsql.format_scientific(magnitude, coalesce(digits, 6), letter, 3, true);
    when 'D' then
      if kind not in ('int2', 'int4', 'int8') then
        return null;
      end if;
      return sign || tsql.zero_padded(magnitude::text, coalesce(digits, 0));
    when 'X' then
      if kind not in ('int2', 'int4', 'int8') then
        return null;
      end if;
      written := to_hex(value::bigint);
      if value < 0 then
        written := right(written, case kind when 'int2' then 4 when 'int4' then 8 else 16 end);
      end if;
      written := tsql.zero_padded(written, coalesce(digits, 0));
      return case letter when 'X' then upper(written) else written end;
    when 'G' then
      if coalesce(digits, 0) = 0 and kind not in ('real', 'float') then
        return value::text;
      end if;
      significant := coalesce(nullif(digits, 0), exact, 0);
      exponent := tsql.exponent_of(magnitude);
      rounded := round(magnitude, significant - 1 - exponent);
      exponent := tsql.exponent_of(rounded);
      if exponent > -5 and exponent < significant then
        return case when rounded = 0 then '' else sign end || trim_scale(rounded);
      end if;
      return sign || tsql.format_scientific(magnitude, significant - 1, case letter when 'G' then 'E' else 'e' end, 2, false);
    else
      return null;
  end case;
end
$$;
comment on function tsql.format_number(numeric, text, text, text) is
'FORMAT of a number; kind is int2, int4, int8, numeric, real or float.';

create or replace function tsql.format(value smallint, format text, culture text) returns text
  language sql stable return tsql.format_number(value, format, culture, 'int2');
create or replace function tsql.format(value integer, format text, culture text) returns text
  language sql stable return tsql.format_number(value, format, culture, 'int4');
create or replace function tsql.format(value bigint, format text, culture text) returns text
  language sql stable return tsql.format_number(value, format, culture, 'int8');
create or replace function tsql.format(value numeric, format text, culture text) returns text
  language sql stable return tsql.format_number(value, format, culture, 'numeric');
-- PostgreSQL's cast of a float to numeric keeps 15 digits, as .NET does; of a real .NET keeps 7
create or replace function tsql.format(value double precision, format text, culture text) returns text
  language sql stable return tsql.format_number(value::numeric, format, culture, 'float');
create or replace function tsql.format(value real, format text, culture text) returns text
  language sql stable return tsql.format_number(
    round(value::double precision::numeric, 6 - tsql.exponent_of(abs(value::double precision::numeric))),
    format, culture, 'real');
comment on function tsql.format(numeric, text, text) is 'SQL Server: FORMAT, in culture en-US.';
