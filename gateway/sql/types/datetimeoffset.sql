-- datetimeoffset: an instant and the offset of its local time (SQL Server, "datetimeoffset").

do $$
begin
  if to_regtype('tsql.datetimeoffset') is null then
    create type tsql.datetimeoffset as (moment timestamptz, minutes smallint, uncompared json);
  end if;
end
$$;
comment on type tsql.datetimeoffset is
  'An instant, and the minutes that its clock is ahead of UTC. T-SQL compares by the instant alone: `uncompared`, '
  'always {}, keeps PostgreSQL from comparing field by field where it has no operator class that says otherwise.';

create or replace function tsql.checked_offset(minutes integer, function_ text) returns smallint
language plpgsql immutable strict parallel safe
as $$
begin
  if abs(minutes) > 840 then
    perform tsql.fail(9812, format('The timezone provided to builtin function %s is invalid.', function_));
  end if;
  return minutes;
end
$$;
comment on function tsql.checked_offset(integer, text) is 'Checks the minutes of an offset, at most 14 hours; error 9812.';

create or replace function tsql.offset_minutes(zone text) returns integer
language plpgsql immutable strict parallel safe
as $$
declare
  part text[] := regexp_match(zone, '^([+-])(\d{2}):(\d{2})$');
begin
  if part is null or part[3]::integer > 59 then
    perform tsql.fail(9812, format('The timezone ''%s'' is invalid.', zone));
  end if;
  return (part[1] || '1')::integer * (part[2]::integer * 60 + part[3]::integer);
end
$$;
comment on function tsql.offset_minutes(text) is 'The minutes of +hh:mm or -hh:mm; error 9812 for another text.';
create or replace function tsql.offset_minutes(zone integer) returns integer
language sql immutable strict parallel safe return zone;

create or replace function tsql.at_instant(moment timestamptz, minutes smallint) returns tsql.datetimeoffset
language plpgsql immutable strict parallel safe
as $$
begin
  if extract(year from moment at time zone 'UTC') not between 1 and 9999
    or extract(year from moment at time zone 'UTC' + interval '1 minute' * minutes) not between 1 and 9999 then
    perform tsql.fail(517, 'Adding a value to a ''datetimeoffset'' column caused an overflow.');
  end if;
  return row(moment, minutes, '{}')::tsql.datetimeoffset;
end
$$;

create or replace function tsql.at_offset(clock timestamp, minutes integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe
return tsql.at_instant((clock - interval '1 minute' * minutes) at time zone 'UTC', minutes::smallint);
comment on function tsql.at_offset(timestamp, integer) is 'The local time of a clock that is this many minutes ahead of UTC.';

-- the local time
create or replace function tsql.moment(value tsql.datetimeoffset) returns timestamp
language sql immutable strict parallel safe
return (value).moment at time zone 'UTC' + interval '1 minute' * (value).minutes;
create or replace function tsql.instant(value tsql.datetimeoffset) returns timestamptz
language sql immutable strict parallel safe return (value).moment;

create or replace function tsql.to_digits(moment timestamp, digits integer) returns timestamp
language sql immutable strict parallel safe
return date_trunc('second', moment) + interval '1 microsecond'
  * round(extract(microseconds from moment)::bigint % 1000000 / 10::numeric ^ (6 - least(digits, 6)))::bigint
  * (10 ^ (6 - least(digits, 6)))::bigint;
comment on function tsql.to_digits(timestamp, integer) is 'Rounded to this number of decimals of the second.';

create or replace function tsql.read_datetimeoffset(text_ text, style integer) returns tsql.datetimeoffset
language plpgsql immutable strict parallel safe
as $$
declare
  words text := btrim(text_, E' \t\n\r');
  -- a time with colons, followed by the offset
  part text[] := regexp_match(words, '^(.*:.*[0-9AaPpMm])\s*([+-])(\d{1,2}):(\d{1,2})$');
begin
  if part is null then
    part := array[(regexp_match(words, '^(\d{4}-\d{2}-\d{2}T[\d:.]+)Z$'))[1], '+', '0', '0'];
  end if;
  if part[1] is null then
    return tsql.at_offset(tsql.read_datetime(words, style), 0);
  end if;
  return tsql.at_offset(tsql.read_datetime(part[1], style),
    tsql.checked_offset(tsql.offset_minutes(part[2] || lpad(part[3], 2, '0') || ':' || lpad(part[4], 2, '0')), 'convert'));
end
$$;
comment on function tsql.read_datetimeoffset(text, integer) is
  'yyyy-mm-dd hh:mm:ss +hh:mm, also with T between, and Z behind; without an offset it is that of UTC.';

-- "DATEPART (Transact-SQL)": a text may have an offset, in whose local time parts are computed, and a seventh decimal
create or replace function tsql.moment_with(part text, function_ text, value text) returns timestamp
language plpgsql immutable strict parallel safe
as $$
declare
  digits text := substring(value from ':\d{1,2}\.(\d{7})');
begin
  if part = 'nanosecond' and right(digits, 1) <> '0' then
    perform tsql.fail(9810, format('The datepart nanosecond is not supported by date function %s for a text with 7 digits '
      'behind the second: times here have 6.', function_));
  end if;
  -- parts are truncated, not rounded
  value := regexp_replace(value, '(:\d{1,2}\.\d{6})\d', '\1');
  return case when value ~ ':.*[+-]\s*\d{1,2}:\d{1,2}\s*$' then tsql.moment(tsql.read_datetimeoffset(value, 0))
    else tsql.read_datetime(value, 0) end;
end
$$;

create or replace function tsql.offset_text(minutes smallint) returns text
language sql immutable strict parallel safe
return case when minutes < 0 then '-' else '+' end || lpad((abs(minutes) / 60)::text, 2, '0') || ':'
  || lpad((abs(minutes) % 60)::text, 2, '0');

create or replace function tsql.datetimeoffset_text(value tsql.datetimeoffset, style integer, digits integer)
returns text
language sql immutable strict parallel safe
return case
  when style in (20, 21, 25, 120, 121) then
    tsql.datetime2_text(tsql.moment(value), 121, case when style in (20, 120) then 0 else digits end)
    || ' ' || tsql.offset_text((value).minutes)
  when style = 126 then tsql.datetime2_text(tsql.moment(value), 126, digits) || tsql.offset_text((value).minutes)
  when style = 127 then tsql.datetime2_text((value).moment at time zone 'UTC', 126, digits) || 'Z'
  else tsql.bad_style(style, 'datetimeoffset')
end;
comment on function tsql.datetimeoffset_text(tsql.datetimeoffset, integer, integer) is
  'In a style of CONVERT: the clock and its offset; 127 in UTC.';

create or replace function tsql.text_of(value tsql.datetimeoffset) returns text
language sql immutable parallel safe return tsql.datetimeoffset_text(value, 121, 7);
create or replace function tsql.to_varchar(value tsql.datetimeoffset, length integer) returns text
language sql immutable parallel safe return pg_catalog.left(tsql.text_of(value), length);
create or replace function tsql.to_varchar(value tsql.datetimeoffset, length integer, style integer) returns text
language sql immutable parallel safe
return pg_catalog.left(tsql.datetimeoffset_text(value, style, 7), coalesce(length, 8000));

-- with a style, which only applies to texts
create or replace function tsql.read_datetime(value tsql.datetimeoffset, style integer) returns timestamp
language sql immutable strict parallel safe return tsql.moment(value);
create or replace function tsql.read_datetime(value tsql.datetimeoffset, style integer, type_ text) returns timestamp
language sql immutable strict parallel safe return tsql.moment(value);
create or replace function tsql.read_datetimeoffset(value tsql.datetimeoffset, style integer)
returns tsql.datetimeoffset
language sql immutable strict parallel safe return value;
call tsql.make_each('{{timestamp,immutable},{timestamptz,stable},{date,immutable},{time,immutable}}', $$
create or replace function tsql.read_datetimeoffset(value %1$s, style integer) returns tsql.datetimeoffset
language sql %2$s strict parallel safe return tsql.at_offset(tsql.moment(value), 0)$$);
call tsql.make_each('{boolean,integer,bigint,numeric,double precision,character,uuid,bytea,xml}', $$
create or replace function tsql.read_datetimeoffset(value %s, style integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe return tsql.read_datetimeoffset(tsql.text_of(value), style)$$);

-- conversions, with the given number of decimals of the second
create or replace function tsql.to_datetimeoffset(value tsql.datetimeoffset, digits integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe
return case when digits >= 6 then value else tsql.at_offset(tsql.to_digits(tsql.moment(value), digits), (value).minutes) end;
call tsql.make_each(array[['timestamp', 'tsql.at_offset(tsql.to_digits(value, digits), 0)'],
  ['date', 'tsql.at_offset(value::timestamp, 0)'], ['time', 'tsql.at_offset(tsql.to_digits(tsql.moment(value), digits), 0)'],
  ['text', 'tsql.to_datetimeoffset(tsql.read_datetimeoffset(value, 0), digits)']
], $$create or replace function tsql.to_datetimeoffset(value %s, digits integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe return %s$$);
-- a timestamptz: in the facility's zone
create or replace function tsql.to_datetimeoffset(value timestamptz, digits integer) returns tsql.datetimeoffset
language sql stable strict parallel safe
return tsql.to_datetimeoffset(
  tsql.at_instant(value, (extract(timezone from value)::integer / 60)::smallint), digits);

call tsql.make_each('{{to_datetime,timestamp},{to_datetime2,timestamp},{to_smalldatetime,timestamp},{to_date,date},{to_time,time}}', $$
create or replace function tsql.%1$s(value tsql.datetimeoffset) returns %2$s
language sql immutable strict parallel safe return tsql.%1$s(tsql.moment(value))$$);

-- the form in which the gateway sends one
create or replace function tsql.sent_datetimeoffset(value text) returns tsql.datetimeoffset
language sql immutable strict parallel safe return tsql.read_datetimeoffset(value, 0);
do $$
begin
  if not exists (
    select from pg_cast where castsource = 'text'::regtype and casttarget = 'tsql.datetimeoffset'::regtype
  ) then
    create cast (text as tsql.datetimeoffset) with function tsql.sent_datetimeoffset(text);
  end if;
end
$$;

create or replace function tsql.sysdatetimeoffset(moment timestamptz default statement_timestamp())
returns tsql.datetimeoffset
language sql stable parallel safe return tsql.to_datetimeoffset(moment, 7);

create or replace function tsql.switchoffset(value tsql.datetimeoffset, minutes integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe
return tsql.at_instant((value).moment, tsql.checked_offset(minutes, 'switchoffset'));
create or replace function tsql.todatetimeoffset(clock timestamp, minutes integer) returns tsql.datetimeoffset
language sql immutable strict parallel safe
return tsql.at_offset(clock, tsql.checked_offset(minutes, 'todatetimeoffset'));

create or replace function tsql.datetimeoffsetfromparts(
  y integer, m integer, d integer, hour integer, minute integer, second integer, fraction integer,
  hour_offset integer, minute_offset integer, digits integer
) returns tsql.datetimeoffset
language plpgsql immutable strict parallel safe
as $$
declare
  minutes integer := hour_offset * 60 + minute_offset;
begin
  if abs(hour_offset) > 14 or abs(minute_offset) > 59 or hour_offset * minute_offset < 0 or abs(minutes) > 840 then
    perform tsql.fail(289, 'Cannot construct data type datetimeoffset, some of the arguments have values which are not '
      'valid.');
  end if;
  return tsql.at_offset(tsql.from_parts(y, m, d, hour, minute, second, tsql.micros(fraction, digits, 'datetimeoffset'),
    'datetimeoffset'), minutes);
end
$$;

create or replace function tsql.tzoffset(value tsql.datetimeoffset) returns integer
language sql immutable strict parallel safe return (value).minutes::integer;
create or replace function tsql.tzoffset(value text) returns integer
language sql immutable strict parallel safe return tsql.tzoffset(tsql.read_datetimeoffset(value, 0));

create or replace function tsql.dateadd(part text, number integer, moment tsql.datetimeoffset)
returns tsql.datetimeoffset
language sql immutable strict parallel safe
return tsql.at_offset(tsql.dateadd(part, number, tsql.moment(moment)), (moment).minutes);

create or replace function tsql.compare_offsets(l tsql.datetimeoffset, r tsql.datetimeoffset) returns integer
language sql immutable strict parallel safe
return case when (l).moment < (r).moment then -1 when (l).moment > (r).moment then 1 else 0 end;

create or replace function tsql.datetrunc(part text, moment tsql.datetimeoffset) returns tsql.datetimeoffset
language plpgsql immutable strict parallel safe
as $$
begin
  return tsql.at_offset(tsql.datetrunc(part, tsql.moment(moment)), (moment).minutes);
end
$$;
