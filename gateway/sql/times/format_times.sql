-- FORMAT of times by .NET's rules (.NET documentation: standard and custom format strings of dates and times, and of
-- time spans, for times of day), in the culture en-US.

create or replace function tsql.quoted_width(pattern text, at integer) returns integer
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
  -- a backslash is an escape inside quotes too
  select length(substring(substr(pattern, at) from
    case substr(pattern, at, 1) when '"' then '^"(?:\\.|[^"\\])*"' else '^''(?:\\.|[^''\\])*''' end))
$$;
comment on function tsql.quoted_width(text, integer) is
'Of what stands in quotes at a position of a format of times, with them; null where they are not closed.';

create or replace function tsql.quoted_part(pattern text, at integer, out width integer, out content text)
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select parts.width, regexp_replace(substr(pattern, at + parts.quote, parts.width - 2 * parts.quote), '\\(.)', '\1', 'g')
  from (
    select case letter when '\' then 0 else 1 end as quote,
      case letter when '\' then 2 else tsql.quoted_width(pattern, at) end as width
    from substr(pattern, at, 1) as letter
  ) as parts
$$;
comment on function tsql.quoted_part(text, integer) is
'The width and the text of what stands in quotes, or after a backslash, at a position of a format of times.';

create or replace function tsql.format_moment(
  moment timestamp, format text, culture text, minutes integer default null
) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  pattern text := format;
  micros text;
  letter text;
  width integer;
  number integer;
  at integer := 1;
  written text := '';
  -- for K and z; empty for a time without an offset
  zone text := case
    when minutes is null then ''
    else case when minutes < 0 then '-' else '+' end || lpad((abs(minutes) / 60)::text, 2, '0')
      || ':' || lpad((abs(minutes) % 60)::text, 2, '0')
  end;
begin
  perform tsql.check_culture(culture);
  if moment is null or format is null then
    return null;
  end if;
  if length(format) <= 1 then
    if format in ('u', 'r', 'R') and minutes is not null then
      moment := moment - make_interval(mins => minutes);
    end if;
    pattern := case format
      when '' then case when minutes is null then 'M/d/yyyy h:mm:ss tt' else 'M/d/yyyy h:mm:ss tt zzz' end
      when 'd' then 'M/d/yyyy'
      when 'D' then 'dddd, MMMM d, yyyy'
      when 't' then 'h:mm tt'
      when 'T' then 'h:mm:ss tt'
      when 'f' then 'dddd, MMMM d, yyyy h:mm tt'
      when 'F' then 'dddd, MMMM d, yyyy h:mm:ss tt'
      when 'g' then 'M/d/yyyy h:mm tt'
      when 'G' then 'M/d/yyyy h:mm:ss tt'
      when 'm' then 'MMMM d'
      when 'M' then 'MMMM d'
      when 'y' then 'MMMM yyyy'
      when 'Y' then 'MMMM yyyy'
      when 'o' then 'yyyy-MM-ddTHH:mm:ss.fffffffK'
      when 'O' then 'yyyy-MM-ddTHH:mm:ss.fffffffK'
      when 'r' then 'ddd, dd MMM yyyy HH:mm:ss ''GMT'''
      when 'R' then 'ddd, dd MMM yyyy HH:mm:ss ''GMT'''
      when 's' then 'yyyy-MM-ddTHH:mm:ss'
      when 'u' then 'yyyy-MM-dd HH:mm:ss''Z'''
    end;
    if format = 'U' and minutes is null then
      perform tsql.fail(102, 'FORMAT by U is refused: it asks for the zone of the server.');
    end if;
  end if;
  if pattern is null then
    return null;
  end if;
  micros := to_char(moment, 'US') || '0';
  while at <= length(pattern) loop
    letter := substr(pattern, at, 1);
    width := length(substr(pattern, at)) - length(ltrim(substr(pattern, at), letter));
    number := null;
    case letter
      when '''', '"', '\' then
        select quoted.width, written || quoted.content into width, written from tsql.quoted_part(pattern, at) as quoted;
      when '%' then
        -- the next letter is a complete format
        width := case when substr(pattern, at + 1, 1) in ('', '%') then null else 2 end;
        written := written || coalesce(tsql.format_moment(moment, substr(pattern, at + 1, 1) || '""', culture, minutes), '');
      when 'd' then
        number := case when width <= 2 then extract(day from moment)::integer end;
        written := written || case width when 1 then '' when 2 then '' when 3 then to_char(moment, 'Dy')
          else to_char(moment, 'FMDay') end;
      when 'M' then
        number := case when width <= 2 then extract(month from moment)::integer end;
        written := written || case width when 1 then '' when 2 then '' when 3 then to_char(moment, 'Mon')
          else to_char(moment, 'FMMonth') end;
      when 'y' then
        number := extract(year from moment)::integer;
        number := case when width <= 2 then number % 100 else number end;
      when 'h' then
        number := (extract(hour from moment)::integer + 11) % 12 + 1;
      when 'H' then
        number := extract(hour from moment)::integer;
      when 'm' then
        number := extract(minute from moment)::integer;
      when 's' then
        number := trunc(extract(second from moment))::integer;
      when 'f' then
        written := written || left(micros, width);
      when 'F' then
        if rtrim(left(micros, width), '0') = '' then
          written := regexp_replace(written, '\.$', '');
        else
          written := written || rtrim(left(micros, width), '0');
        end if;
      when 't' then
        written := written || left(to_char(moment, 'AM'), width);
      when 'g' then
        written := written || 'A.D.';
      when 'K' then
        width := 1;
        written := written || zone;
      when 'z' then
        if minutes is null then
          perform tsql.fail(102, 'FORMAT by z is refused: it asks for the zone of the server.');
        end if;
        written := written || case width when 1 then left(zone, 1) || abs(minutes) / 60 when 2 then left(zone, 3) else zone end;
      else
        written := written || repeat(letter, width);
    end case;
    if width is null or at + width > length(pattern) + 1 or letter in ('f', 'F') and width > 7 then
      return null;
    end if;
    if number is not null then
      -- years may have any number of digits, all others at most two
      written := written || tsql.zero_padded(number::text, case letter when 'y' then width else least(width, 2) end);
    end if;
    at := at + width;
  end loop;
  return written;
end
$$;
comment on function tsql.format_moment(timestamp, text, text, integer) is
'FORMAT of a time with its date; minutes: of its offset, where it has one.';

create or replace function tsql.format_time(value time, format text, culture text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  pattern text := format;
  micros constant text := to_char('2000-01-01'::date + value, 'US') || '0';
  letter text;
  width integer;
  at integer := 1;
  written text := '';
  number integer;
begin
  perform tsql.check_culture(culture);
  if value is null or format is null then
    return null;
  end if;
  if length(format) <= 1 then
    pattern := case
      when format in ('', 'c', 't', 'T') and micros = '0000000' then 'hh\:mm\:ss'
      when format in ('', 'c', 't', 'T') then 'hh\:mm\:ss\.fffffff'
      when format = 'g' then 'h\:mm\:ss' || case micros when '0000000' then '' else '\.FFFFFFF' end
      when format = 'G' then 'd\:hh\:mm\:ss\.fffffff'
    end;
  end if;
  while at <= length(pattern) loop
    letter := substr(pattern, at, 1);
    width := length(substr(pattern, at)) - length(ltrim(substr(pattern, at), letter));
    number := null;
    case letter
      when '''', '"', '\' then
        select quoted.width, written || quoted.content into width, written from tsql.quoted_part(pattern, at) as quoted;
      when '%' then
        width := case when substr(pattern, at + 1, 1) in ('', '%') then null else 1 end;
      when 'd' then
        number := 0;
      when 'h' then
        number := extract(hour from value)::integer;
      when 'm' then
        number := extract(minute from value)::integer;
      when 's' then
        number := trunc(extract(second from value))::integer;
      when 'f' then
        written := written || left(micros, width);
      when 'F' then
        written := written || rtrim(left(micros, width), '0');
      else
        return null;
    end case;
    if width is null or at + width > length(pattern) + 1
      or letter in ('h', 'm', 's') and width > 2 or letter in ('f', 'F') and width > 7 or letter = 'd' and width > 8
    then
      return null;
    end if;
    if number is not null then
      written := written || tsql.zero_padded(number::text, width);
    end if;
    at := at + width;
  end loop;
  return case when pattern is null then null else written end;
end
$$;
comment on function tsql.format_time(time, text, text) is
'FORMAT of a time of day, which is a time span to .NET: points and colons need a backslash or quotes.';

call tsql.make_each(array[['timestamp', 'format_moment(value'], ['date', 'format_moment(value::timestamp'],
  ['timestamptz', 'format_moment(value::timestamp'], ['time', 'format_time(value']
], $$create or replace function tsql.format(value %s, format text, culture text) returns text
language sql stable return tsql.%s, format, culture)$$);
create or replace function tsql.format(value tsql.datetimeoffset, format text, culture text) returns text
  language sql stable return tsql.format_moment(
    ((value).moment at time zone 'UTC') + make_interval(mins => (value).minutes), format, culture, (value).minutes);
