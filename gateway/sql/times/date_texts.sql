-- Dates and times in texts.

create or replace function tsql.read_clock(text_ text) returns interval
language plpgsql immutable strict parallel safe
as $$
declare
  part text[];
  hours integer;
  fraction text;
begin
  part := regexp_match(
    btrim(text_),
    '^(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:([.:])(\d{1,9}))?)?)?\s*([AaPp][Mm])?$'
  );
  if part is null or (part[2] is null and part[6] is null) then
    return null;
  end if;
  hours := part[1]::integer;
  if part[6] is not null then
    if hours = 0 and upper(part[6]) = 'PM' or hours > 12 and upper(part[6]) = 'AM' then
      return interval '-1 hour';
    elsif hours <= 12 then
      hours := hours % 12 + case upper(part[6]) when 'PM' then 12 else 0 end;
    end if;
  end if;
  if hours > 23 or coalesce(part[2]::integer, 0) > 59 or coalesce(part[3]::integer, 0) > 59 then
    return interval '-1 hour';
  end if;
  -- digits after a period are a fraction, after a colon milliseconds
  fraction := coalesce(part[5], '0');
  if part[4] = ':' then
    if length(fraction) > 3 then
      return null;
    end if;
    fraction := lpad(fraction, 3, '0');
  end if;
  return make_interval(hours => hours, mins => coalesce(part[2]::integer, 0))
    -- rounded to microseconds, within the second
    + interval '1 second' * (coalesce(part[3], '0')::numeric
      + least(round(('0.' || fraction)::numeric, 6), 0.999999));
end
$$;
comment on function tsql.read_clock(text) is
  'The time of day in a text; null if the text has none, below 0 for an impossible one, such as 25:00.';

create or replace function tsql.century(year text) returns integer
language sql immutable strict parallel safe
return case when length(year) > 2 then year::integer
            when year::integer < 50 then 2000 + year::integer
            else 1900 + year::integer end;

create or replace function tsql.read_date(text_ text, order_ text) returns date
language plpgsql immutable strict parallel safe
as $$
declare
  months constant text[] := array['jan','feb','mar','apr','may','jun','jul','aug','sep','oct','nov','dec'];
  names constant text :=
    '(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?'
    '|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)';
  -- blanks are allowed around the separators
  words text := regexp_replace(lower(btrim(text_)), '(?<=\d) *([-/.]) *(?=\d)', '\1', 'g');
  part text[];
  y integer;
  m integer;
  d integer;
begin
  if words ~ '^\d{8}$' then
    y := left(words, 4)::integer; m := substr(words, 5, 2)::integer; d := right(words, 2)::integer;
  elsif words ~ '^\d{6}$' then
    y := tsql.century(left(words, 2)); m := substr(words, 3, 2)::integer; d := right(words, 2)::integer;
  elsif words ~ '^\d{4}$' then
    y := words::integer; m := 1; d := 1;
  elsif words ~ '^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}$' then
    if order_ in ('set dmy', 'set dym', 'set ydm') then
      perform tsql.fail(241, format('Conversion failed when converting date and/or time from character string: '
        'under SET DATEFORMAT %s the month of ''%s'' depends on the type. Write it as 20261120.',
        right(order_, 3), words));
    end if;
    part := regexp_split_to_array(words, '[-/.]');
    y := part[1]::integer; m := part[2]::integer; d := part[3]::integer;
  elsif words ~ '^\d{1,2}([-/.])\d{1,2}\1(\d{1,2}|\d{4})$' and (order_ !~ '^set y' or words ~ '[-/.]\d{2,4}$')
    or order_ in ('set ymd', 'set ydm', 'set myd', 'set dym') and words ~ '^\d{1,2}([-/.])\d{1,2}\1\d$' then
    part := regexp_split_to_array(words, '[-/.]');
    case order_
      when 'mdy' then m := part[1]::integer; d := part[2]::integer; y := tsql.century(part[3]);
      when 'dmy', 'set dmy' then d := part[1]::integer; m := part[2]::integer; y := tsql.century(part[3]);
      else
        -- the year is elsewhere, with two digits
        if length(part[3]) > 2 or length(part[strpos(right(order_, 3), 'y')]) < 2 then
          return null;
        end if;
        y := tsql.century(part[strpos(right(order_, 3), 'y')]);
        m := part[strpos(right(order_, 3), 'm')]::integer;
        d := part[strpos(right(order_, 3), 'd')]::integer;
    end case;
  elsif order_ in ('set myd', 'set dym') and words ~ '^\d{1,2}([-/.])\d{4}\1\d{1,2}$' then
    part := regexp_split_to_array(words, '[-/.]');
    y := part[2]::integer;
    m := part[strpos(right(order_, 3), 'm')]::integer;
    d := part[strpos(right(order_, 3), 'd')]::integer;
  else
    -- a month's name with the year, and the day before, after or between them: Nov 20, 2026 · 2026 Nov · 20-Nov-2026
    part := regexp_match(
      regexp_replace(words, '^(\d+) *([-/.]) *([a-z]+) *\2 *(\d+)$', '\1 \3 \4'),
      '^(?:(\d+)[\s,]*)??(?:(\d+)[\s,]*)?' || names || '(?:[\s,]*(\d+))?(?:[\s,]+(\d+))?$'
    );
    if part is null then
      return null;
    end if;
    m := array_position(months, left(part[3], 3));
    part := array_remove(array[part[1], part[2], part[4], part[5]], null);
    if part[3] is not null or part[1] is null or array_to_string(part, ' ') !~ '^(\d{1,2}|\d{4})( (\d{1,2}|\d{4}))?$' then
      return null;
    end if;
    -- four digits are the year, otherwise it is the last number
    if length(part[1]) = 4 then
      y := part[1]::integer; d := coalesce(part[2], '1')::integer;
    elsif length(part[2]) = 4 or length(part[2]) <= 2 and order_ not in ('set ymd', 'set ydm', 'set myd', 'set dym') then
      y := tsql.century(part[2]); d := part[1]::integer;
    else
      return null;
    end if;
  end if;
  if y not between 1 and 9999 or m not between 1 and 12 or d not between 1 and 31 then
    return 'infinity';
  end if;
  if d > extract(day from (make_date(y, m, 1) + interval '1 month - 1 day')) then
    return 'infinity';
  end if;
  return make_date(y, m, d);
end
$$;
comment on function tsql.read_date(text, text) is
$$The date in a text; order_ is the order of numbers as in 11/20/2026: mdy, dmy or ymd of a style, or "set dmy" and so on
of SET DATEFORMAT. Null if the text has no date, infinity for one outside the calendar, such as February 30. Error 241 if
the text is ambiguous under the setting.$$;

create or replace function tsql.read_moment(text_ text, order_ text) returns timestamp
language plpgsql immutable strict parallel safe
as $$
declare
  words text := btrim(text_, E' \t\n\r');
  part text[];
  day date;
  clock interval;
begin
  if words = '' then
    return timestamp '1900-01-01';
  end if;
  -- Z is accepted and means no offset ("CAST and CONVERT", style 127)
  part := regexp_match(words, '^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)Z?$');
  if part is not null then
    order_ := 'ymd';
  else
    -- the part with a colon, or with AM or PM at its end, is the time of day
    part := regexp_match(words, '^(.*?)\s*(\d{1,2}(?::[\d:.]+)?\s*[AaPp][Mm]|\d{1,2}:[\d:.]+)$');
  end if;
  if part is null then
    return tsql.read_date(words, order_)::timestamp;
  end if;
  clock := tsql.read_clock(part[2]);
  if clock is null then
    return null;
  end if;
  if part[1] = '' then
    return case when clock < interval '0' then 'infinity' else timestamp '1900-01-01' + clock end;
  end if;
  if right(part[1], 1) ~ '\d' and words !~ '[\sT]' then
    return null;
  end if;
  day := tsql.read_date(part[1], order_);
  return case when clock < interval '0' and day is not null then 'infinity' else day + clock end;
end
$$;

create or replace function tsql.year_first(text_ text, style integer, older boolean) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  order_ text := case
    when style in (1, 10, 101, 110) or style = 22 and not older then 'mdy'
    when style in (3, 4, 5, 103, 104, 105) then 'dmy'
    when style in (2, 11, 20, 21, 102, 111, 120, 121, 126, 127) or style in (23, 25) and not older then 'ymd'
  end;
  has_century boolean := style >= 20 and style <> 22;
  part text[] := regexp_match(text_, '^(\d{1,4})\s*([-/.])\s*(\d{1,4})\s*\2\s*(\d{1,4})(?!\d)(.*)$');
  year integer;
begin
  if part is null then
    return text_;
  end if;
  if older and style in (126, 127) then
    return case when text_ ~ '^\d{4}-\d\d-\d\d$' then text_ end;
  end if;
  part := array[part[1], part[3], part[4], part[5]];
  year := strpos(order_, 'y');
  if older and has_century then
    -- four digits are the year; the other numbers keep their order
    year := array_position(array[length(part[1]) = 4, length(part[2]) = 4, length(part[3]) = 4], true);
    order_ := overlay(replace(order_, 'y', '') placing 'y' from year for 0);
  end if;
  if order_ is null or (length(part[year]) = 4) <> has_century then
    return null;
  end if;
  return concat_ws('-', case when has_century then part[year] else to_char(tsql.century(part[year]), 'FM0000') end,
    part[strpos(order_, 'm')], part[strpos(order_, 'd')]) || part[4];
end
$$;
comment on function tsql.year_first(text, integer, boolean) is
$$A text with a date in a style of CONVERT, rewritten with the year first; null if the date does not have the style. Styles
below 100 have years of two digits, except 20, 21, 23 and 25. For datetime and smalldatetime a year of four digits may be
anywhere: '2026-05-06' is in June in style 103.$$;

create or replace function tsql.without_offset(text_ text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  part text[] := regexp_match(text_, '^(.*?\d{1,2}:\d[\d:.]*)(\s*)([AaPp][Mm]\s*)?(?:Z|([-+])\s*(\d{1,2}):(\d{1,2}))\s*$');
begin
  if part is null then
    return regexp_replace(text_, '^(\s*\d{4}-\d\d-\d\d)Z\s*$', '\1');
  elsif part[1] ~ '^\s*\d{4}-\d\d-\d\dT' and (part[2] <> '' or part[3] is not null)
    or part[6]::integer > 59 or part[5]::integer * 60 + part[6]::integer > 14 * 60 then
    return null;
  end if;
  return concat(part[1], part[2], part[3]);
end
$$;
comment on function tsql.without_offset(text) is
$$A text for a date, time or datetime2, without the offset after its time ("datetime2", "Supported string literal
formats"); null for an invalid offset.$$;

create or replace function tsql.for_older(text_ text) returns text
language sql immutable strict parallel safe
return regexp_replace(regexp_replace(regexp_replace(text_,
  -- the time of day precedes the date
  '^\s*(\d{1,2}:\d[\d:.]*(?:\s*[AaPp][Mm])?)\s+(\S.*[^Zz\s])\s*$', '\2 \1'),
  '^\s*(\d{4}-\d\d-\d\d|\d{1,2}:\d[\d:.]*)\s*Z\s*$', '\1'),
  -- a year of four digits is between month and day
  '^\s*(\d{1,2}) *([-/.]) *(\d{4}) *\2 *(\d{1,2})(?=\s|$)', '\3-\1-\4');
comment on function tsql.for_older(text) is
  'A text for a datetime or smalldatetime, converted from the forms that only these types accept.';

create or replace function tsql.read_moment(text_ text, style integer, older boolean) returns timestamp
language plpgsql immutable strict parallel safe
as $$
begin
  if text_ ~ '^(\d{8}|\d{4}-\d\d-\d\d)( \d\d:\d\d(:\d\d(\.\d+)?)?)?$' then
    -- the usual case: a form that all types accept
    null;
  elsif not older then
    text_ := tsql.without_offset(text_);
    -- Apr, 1996 and 15 Apr, 1996, but Apr 15, 1996 ("Date types", alphabetical formats)
    if text_ is null or text_ ~* '[a-z]\s*,[\s,-]*\d+[\s,-]+\d+($|\s)' or text_ ~ '\d{4}\s*,' then
      return null;
    end if;
  elsif style = 0 and tsql.date_order() = 'mdy' then
    text_ := tsql.for_older(text_);
  end if;
  if style = 0 then
    return tsql.read_moment(text_, tsql.date_order());
  elsif style < 0 then
    return tsql.read_moment(text_, case when -style % 100 in (3, 4, 5) then 'dmy' when -style % 100 in (2, 11) then 'ymd'
      when -style % 100 = 0 then tsql.date_order() else 'mdy' end);
  elsif text_ ~ '^\s*\d{4}-\d\d-\d\dT' then
    return case when not older or style in (126, 127) then tsql.read_moment(text_, 'ymd') end;
  end if;
  return tsql.read_moment(tsql.year_first(btrim(text_, E' \t\n\r'), style, older), 'ymd');
end
$$;
comment on function tsql.read_moment(text, integer, boolean) is
$$The moment in a text in a style of CONVERT, for datetime and smalldatetime or for a newer type; null and infinity as in
tsql.read_date. A style below 0, of Sybase clients, only determines the order of day, month and year.$$;

create or replace function tsql.read_moment(text_ text, style integer) returns timestamp
language sql immutable strict parallel safe
return tsql.read_moment(text_, style, false);

create or replace function tsql.read_datetime(text_ text, style integer) returns timestamp
language plpgsql immutable strict parallel safe
as $$
declare
  moment timestamp := tsql.read_moment(text_, style, false);
begin
  if moment is null or not isfinite(moment) then
    perform tsql.fail(241, 'Conversion failed when converting date and/or time from character string.');
  end if;
  return moment;
end
$$;
comment on function tsql.read_datetime(text, integer) is
  'The moment in a text to the microsecond, not rounded to 1/300 s. Error 241 for a text without a date.';

create or replace function tsql.read_datetime(text_ text, style integer, type_ text) returns timestamp
language plpgsql immutable strict parallel safe
as $$
declare
  moment timestamp := tsql.read_moment(text_, style, true);
begin
  if text_ ~ ':\d{1,2}\.\d{4,}' then
    -- a datetime in a text has three decimals of the second
    moment := null;
  end if;
  if moment is null and type_ = 'smalldatetime' then
    perform tsql.fail(295, 'Conversion failed when converting character string to smalldatetime data type.');
  elsif moment is null then
    perform tsql.fail(241, 'Conversion failed when converting date and/or time from character string.');
  elsif not isfinite(moment) then
    perform tsql.fail(242,
      format('The conversion of a varchar data type to a %s data type resulted in an out-of-range value.', type_));
  end if;
  return moment;
end
$$;
comment on function tsql.read_datetime(text, integer, text) is
$$The same for a datetime or smalldatetime, with other errors ("Database Engine events and errors"): 241 or 295 for a text
without a date, 242 for a date outside the calendar.$$;

create or replace function tsql.isdate(text_ text) returns integer
language sql immutable parallel safe
return (
  with named (moment) as (select tsql.read_moment(text_, tsql.date_order()))
  select case when coalesce(btrim(text_), '') <> '' and isfinite(moment) and moment >= timestamp '1753-01-01'
    -- a datetime in a text has three decimals of the second
    and text_ !~ ':\d{1,2}\.\d{4,}' then 1 else 0 end
  from named
);
