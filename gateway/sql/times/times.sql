-- Times: conversion to texts, differences, sums.

create or replace function tsql.in_range(moment timestamp) returns timestamp
language plpgsql immutable strict parallel safe
as $$
begin
  if moment < timestamp '1753-01-01' or moment >= timestamp '9999-12-31 23:59:59.9985' then
    perform tsql.fail(242, 'The conversion to a datetime data type resulted in an out-of-range value.');
  end if;
  return tsql.rounded(moment);
end
$$;

create or replace function tsql.clock_text(moment timestamp, milliseconds boolean) returns text
language sql immutable strict parallel safe
return lpad(to_char(moment, 'FMHH12'), 2, ' ') || to_char(moment, ':MI')
  || case when milliseconds then to_char(moment, ':SS:MS') else '' end || to_char(moment, 'AM');

create or replace function tsql.datetime_text(moment timestamp, style integer) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  month text := to_char(moment, 'Mon');
  day text := to_char(moment, 'FMDD');
  year text := case when style between 100 and 199 or style in (0, 9, 13, 20, 21, 23, 25) then to_char(moment, 'YYYY')
    else to_char(moment, 'YY') end;
begin
  return case
    when style in (0, 100) then
      month || ' ' || lpad(day, 2) || ' ' || year || ' ' || tsql.clock_text(moment, false)
    when style in (1, 101) then to_char(moment, 'MM/DD/') || year
    when style in (2, 102) then year || to_char(moment, '.MM.DD')
    when style in (3, 103) then to_char(moment, 'DD/MM/') || year
    when style in (4, 104) then to_char(moment, 'DD.MM.') || year
    when style in (5, 105) then to_char(moment, 'DD-MM-') || year
    when style in (6, 106) then to_char(moment, 'DD Mon ') || year
    when style in (7, 107) then to_char(moment, 'Mon DD, ') || year
    when style in (8, 24, 108) then to_char(moment, 'HH24:MI:SS')
    when style in (9, 109) then
      month || ' ' || lpad(day, 2) || ' ' || year || ' ' || tsql.clock_text(moment, true)
    when style in (10, 110) then to_char(moment, 'MM-DD-') || year
    when style in (11, 111) then year || to_char(moment, '/MM/DD')
    when style in (12, 112) then year || to_char(moment, 'MMDD')
    when style in (13, 113) then to_char(moment, 'DD Mon YYYY HH24:MI:SS:MS')
    when style in (14, 114) then to_char(moment, 'HH24:MI:SS:MS')
    when style in (20, 120) then to_char(moment, 'YYYY-MM-DD HH24:MI:SS')
    when style in (21, 25, 121) then to_char(moment, 'YYYY-MM-DD HH24:MI:SS.MS')
    when style = 22 then to_char(moment, 'MM/DD/YY ') || lpad(to_char(moment, 'FMHH12'), 2)
      || to_char(moment, ':MI:SS AM')
    when style = 23 then to_char(moment, 'YYYY-MM-DD')
    when style in (126, 127) then to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS')
      || case when extract(microseconds from moment)::bigint % 1000000 >= 1000 then to_char(moment, '.MS')
         else '' end
    else tsql.bad_style(style)
  end;
end
$$;
comment on function tsql.datetime_text(timestamp, integer) is
  'A datetime in one of the styles of CONVERT (SQL Server, "CAST and CONVERT", date and time styles).';

create or replace function tsql.bad_style(style integer, type_ text) returns text
language plpgsql immutable
as $$
begin
  if type_ = 'date' and style in (8, 24, 108)
    or type_ = 'time' and style in (1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 23, 101, 102, 103, 104, 105, 106, 107, 110, 111, 112) then
    perform tsql.fail(8114, format('Error converting data type %s to varchar.', type_));
  end if;
  perform tsql.fail(281,
    format('%s is not a valid style number when converting from %s to a character string.', style, type_));
  return null;
end
$$;

create or replace function tsql.bad_style(style integer) returns text
language sql immutable
return tsql.bad_style(style, 'datetime');

create or replace function tsql.fraction_text(moment timestamp, digits integer) returns text
language sql immutable strict parallel safe
return case when digits = 0 then '' else '.' || left(to_char(moment, 'US') || '0', digits) end;
comment on function tsql.fraction_text(timestamp, integer) is 'The point and the given number of decimals of the second, at most seven.';

create or replace function tsql.date_text(day date, style integer) returns text
language sql immutable strict parallel safe
return case
  when style in (0, 9, 100, 109) then to_char(day, 'Mon ') || lpad(to_char(day, 'FMDD'), 2) || to_char(day, ' YYYY')
  when style in (13, 113) then to_char(day, 'DD Mon YYYY')
  when style in (20, 21, 23, 25, 120, 121, 126, 127) then to_char(day, 'YYYY-MM-DD')
  when style = 22 then to_char(day, 'MM/DD/YY')
  when style in (1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 101, 102, 103, 104, 105, 106, 107, 110, 111, 112) then
    tsql.datetime_text(day, style)
  else tsql.bad_style(style, 'date')
end;
comment on function tsql.date_text(date, integer) is 'A date in one of the styles of CONVERT, without a time of day.';

create or replace function tsql.time_text(clock time, style integer, digits integer) returns text
language sql immutable strict parallel safe
return case
  when style in (0, 100) then ltrim(tsql.clock_text(timestamp '1900-01-01' + clock, false))
  when style = 22 then lpad(to_char(timestamp '1900-01-01' + clock, 'FMHH12'), 2)
    || to_char(timestamp '1900-01-01' + clock, ':MI:SS AM')
  when style in (8, 20, 24, 108, 120) then to_char(timestamp '1900-01-01' + clock, 'HH24:MI:SS')
  when style in (9, 109) then to_char(timestamp '1900-01-01' + clock, 'FMHH12:MI:SS')
    || tsql.fraction_text(timestamp '1900-01-01' + clock, digits)
    || to_char(timestamp '1900-01-01' + clock, 'AM')
  when style in (126, 127) and extract(microseconds from clock)::bigint % 1000000 = 0 then
    to_char(timestamp '1900-01-01' + clock, 'HH24:MI:SS')
  when style in (13, 14, 21, 25, 113, 114, 121, 126, 127) then
    to_char(timestamp '1900-01-01' + clock, 'HH24:MI:SS')
    || tsql.fraction_text(timestamp '1900-01-01' + clock, digits)
  else tsql.bad_style(style, 'time')
end;
comment on function tsql.time_text(time, integer, integer) is
  'A time with the given number of decimals in one of the styles of CONVERT, without a date.';

create or replace function tsql.datetime2_text(moment timestamp, style integer, digits integer) returns text
language sql immutable strict parallel safe
return case
  when style in (9, 109) then to_char(moment, 'Mon ') || lpad(to_char(moment, 'FMDD'), 2)
    || to_char(moment, ' YYYY ') || lpad(to_char(moment, 'FMHH12'), 2) || to_char(moment, ':MI:SS')
    || tsql.fraction_text(moment, digits) || to_char(moment, 'AM')
  when style in (13, 113) then to_char(moment, 'DD Mon YYYY HH24:MI:SS') || tsql.fraction_text(moment, digits)
  when style in (14, 114) then to_char(moment, 'HH24:MI:SS') || tsql.fraction_text(moment, digits)
  when style in (21, 25, 121) then to_char(moment, 'YYYY-MM-DD HH24:MI:SS') || tsql.fraction_text(moment, digits)
  when style in (126, 127) then to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS')
    || case when extract(microseconds from moment)::bigint % 1000000 = 0 then ''
       else tsql.fraction_text(moment, digits) end
  else tsql.datetime_text(moment, style)
end;
comment on function tsql.datetime2_text(timestamp, integer, integer) is
  'A datetime2 with the given number of decimals in one of the styles of CONVERT (SQL Server, "CAST and CONVERT").';

create or replace function tsql.later(moment timestamp, other timestamp) returns timestamp
language sql immutable strict parallel safe return moment + (other - timestamp '1900-01-01');
comment on function tsql.later(timestamp, timestamp) is 'A datetime + another: both count from 1900.';
create or replace function tsql.earlier(moment timestamp, other timestamp) returns timestamp
language sql immutable strict parallel safe return moment - (other - timestamp '1900-01-01');
comment on function tsql.earlier(timestamp, timestamp) is 'A datetime - another: both count from 1900.';

-- not strict, so that it is inlined into a query
create or replace function tsql.fitted_time(value time, digits integer) returns time
language sql immutable parallel safe
return case
  -- a column of microseconds is not rounded
  when digits between 0 and 5 and value >= time '24:00' - interval '1 microsecond' * (500000 * 10::numeric ^ -digits)
    then time '24:00' - interval '1 microsecond' * (1000000 * 10::numeric ^ -digits)
  else value
end;
comment on function tsql.fitted_time(time, integer) is
  'A time before it is rounded to the given number of decimals: the last times of a day are not rounded up to the next day.';

-- not strict, so that it is inlined into a query
create or replace function tsql.fitted_datetime2(value timestamp, digits integer) returns timestamp
language sql immutable parallel safe
return case
  when digits between 0 and 5 and value < timestamp '2000-01-01'
    and mod(extract(microseconds from value), 10::numeric ^ (6 - digits)) = 5 * 10::numeric ^ (5 - digits)
    then value + interval '1 microsecond'
  else value
end;
comment on function tsql.fitted_datetime2(timestamp, integer) is
  'A datetime2 before it is rounded to the given number of decimals: halves are rounded up; PostgreSQL rounds those before 2000 down.';

-- converts datetime columns, dates, times and texts to the timestamp with which date functions compute
call tsql.make_each(array[['timestamp', 'value'], ['date', 'value::timestamp'], ['time', 'timestamp ''1900-01-01'' + value'],
  ['text', 'tsql.read_datetime(value, 0)']
], 'create or replace function tsql.moment(value %s) returns timestamp language sql immutable strict parallel safe return %s');
create or replace function tsql.moment(value timestamptz) returns timestamp
language sql stable strict parallel safe return value::timestamp;
-- the value is an argument, because PostgreSQL would raise the error of a constant while planning
create or replace function tsql.no_datetime(days numeric) returns timestamp
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail(8115, 'Arithmetic overflow error converting expression to data type datetime.');
end
$$;
comment on function tsql.no_datetime(numeric) is 'Error 8115: a number of days that is before 1753 or after 9999.';
create or replace function tsql.moment(value double precision) returns timestamp
language sql immutable strict parallel safe
return case when value >= -53690 and value < 2958464
  then tsql.in_range(timestamp '1900-01-01' + interval '1 microsecond' * round(value::numeric * 86400000000))
  else tsql.no_datetime(value::numeric) end;
create or replace function tsql.moment(value integer) returns timestamp
language sql immutable strict parallel safe
return case when value between -53690 and 2958463
  then tsql.in_range(timestamp '1900-01-01' + interval '1 day' * value) else tsql.no_datetime(value::numeric) end;
create or replace function tsql.moment(value boolean) returns timestamp
language sql immutable strict parallel safe return tsql.moment(value::integer);
create or replace function tsql.moment(value numeric) returns timestamp
language sql immutable strict parallel safe
return case when value >= -53690 and value < 2958464
  then tsql.in_range(timestamp '1900-01-01' + interval '1 microsecond' * round(value * 86400000000))
  else tsql.no_datetime(value) end;

-- arguments of datediff; a datetimeoffset is refused, because the documentation does not specify the offset in which it
-- counts
call tsql.make_each('{{timestamp,immutable},{timestamptz,stable},{date,immutable},{time,immutable},{text,immutable},
  {boolean,immutable},{integer,immutable},{numeric,immutable},{double precision,immutable}}', $$
create or replace function tsql.datediff(value %s) returns timestamp
language sql %s strict parallel safe return tsql.moment(value)$$);

create or replace function tsql.bad_part(part text, function_ text, of_type text) returns text
language plpgsql immutable
as $$
begin
  perform tsql.fail(9810, format('The datepart %s is not supported by date function %s for data type %s.',
    part, function_, of_type));
  return null;
end
$$;

create or replace function tsql.moment_with(part text, function_ text, value anyelement) returns timestamp
language sql stable strict parallel safe as 'select tsql.moment(value)';
create or replace function tsql.moment_with(part text, function_ text, value date) returns timestamp
language sql immutable strict parallel safe
return case when part in ('hour', 'minute', 'second', 'millisecond', 'microsecond', 'nanosecond')
  then tsql.bad_part(part, function_, 'date')::timestamp else value::timestamp end;
create or replace function tsql.moment_with(part text, function_ text, value time) returns timestamp
language sql immutable strict parallel safe
return case when part in ('hour', 'minute', 'second', 'millisecond', 'microsecond', 'nanosecond')
  then timestamp '1900-01-01' + value else tsql.bad_part(part, function_, 'time')::timestamp end;
comment on function tsql.moment_with(text, text, anyelement) is
  'The moment for datepart and the like, if only PostgreSQL knows its type; error 9810 for a type without the part.';
create or replace function tsql.dateadd(part text, number integer, moment timestamp) returns timestamp
language plpgsql immutable strict parallel safe
as $$
declare
  added timestamp;
begin
  added := moment + case part
    when 'year' then interval '1 year' * number
    when 'quarter' then interval '3 months' * number
    when 'month' then interval '1 month' * number
    when 'dayofyear' then interval '1 day' * number
    when 'day' then interval '1 day' * number
    when 'weekday' then interval '1 day' * number
    when 'week' then interval '7 days' * number
    when 'hour' then interval '1 hour' * number
    when 'minute' then interval '1 minute' * number
    when 'second' then interval '1 second' * number
    when 'millisecond' then interval '1 millisecond' * number
    when 'microsecond' then interval '1 microsecond' * number
    when 'nanosecond' then interval '1 microsecond' * trunc(number / 1000.0)
  end;
  if extract(year from added) not between 1 and 9999 then
    perform tsql.fail(517, 'Adding a value to a ''datetime'' column caused an overflow.');
  end if;
  return added;
exception when datetime_field_overflow or interval_field_overflow then
  perform tsql.fail(517, 'Adding a value to a ''datetime'' column caused an overflow.');
end
$$;
comment on function tsql.dateadd(text, integer, timestamp) is 'DATEADD: a day beyond the end of the month becomes its last day.';
create or replace function tsql.added(moment timestamp, type_ text) returns timestamp
language plpgsql immutable strict parallel safe
as $$
begin
  if type_ = 'datetime' and extract(year from moment) < 1753
    or type_ = 'smalldatetime' and (moment < timestamp '1900-01-01' or moment >= timestamp '2079-06-06 23:59:29.999')
  then
    perform tsql.fail(517, format('Adding a value to a ''%s'' column caused an overflow.', type_));
  end if;
  return moment;
end
$$;
comment on function tsql.added(timestamp, text) is 'The sum, if it is in the range of its type; error 517 otherwise.';
create or replace function tsql.dateadd(part text, number integer, moment timestamptz) returns timestamp
language sql stable strict parallel safe return tsql.dateadd(part, number, moment::timestamp);
create or replace function tsql.dateadd(part text, number integer, moment date) returns date
language sql immutable strict parallel safe
return case when part in ('hour', 'minute', 'second', 'millisecond', 'microsecond', 'nanosecond')
  then tsql.bad_part(part, 'dateadd', 'date')::date else tsql.dateadd(part, number, moment::timestamp)::date end;
create or replace function tsql.dateadd(part text, number integer, moment time) returns time
language sql immutable strict parallel safe
return case when part in ('hour', 'minute', 'second', 'millisecond', 'microsecond', 'nanosecond')
  then tsql.dateadd(part, number, timestamp '2000-01-01' + moment)::time
  else tsql.bad_part(part, 'dateadd', 'time')::time end;
create or replace function tsql.dateadd(part text, number integer, moment text) returns timestamp
language sql immutable strict parallel safe
return tsql.added(tsql.dateadd(part, number, tsql.in_range(tsql.read_datetime(moment, 0))), 'datetime');
call tsql.make_each('{boolean,integer,numeric,double precision}', $$
create or replace function tsql.dateadd(part text, number integer, moment %s) returns timestamp
language sql immutable strict parallel safe
return tsql.added(tsql.dateadd(part, number, tsql.moment(moment)), 'datetime')$$);

create or replace function tsql.datediff_overflows() returns void
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail(535, 'The datediff function resulted in an overflow. The number of dateparts separating two '
    'date/time instances is too large. Try to use datediff with a less precise datepart.');
end
$$;
call tsql.make_each('{{int,bigint,integer},{bigint,numeric,bigint}}', $$
create or replace function tsql.datediff_%s(difference %s) returns %s language plpgsql immutable strict parallel safe
as 'begin return difference::%3$s; exception when numeric_value_out_of_range then perform tsql.datediff_overflows(); end'$$);

create or replace function tsql.datediff(part text, start_ timestamp, end_ timestamp) returns bigint
language sql immutable strict parallel safe
return case part
  when 'year' then extract(year from end_)::bigint - extract(year from start_)::bigint
  when 'quarter' then extract(year from end_)::bigint * 4 + extract(quarter from end_)::bigint
    - extract(year from start_)::bigint * 4 - extract(quarter from start_)::bigint
  when 'month' then extract(year from end_)::bigint * 12 + extract(month from end_)::bigint
    - extract(year from start_)::bigint * 12 - extract(month from start_)::bigint
  when 'day' then end_::date - start_::date
  when 'dayofyear' then end_::date - start_::date
  when 'weekday' then end_::date - start_::date
  -- a week begins on Sunday regardless of @@datefirst; 1899-12-31 was a Sunday
  when 'week' then (end_::date - date '0001-01-07') / 7 - (start_::date - date '0001-01-07') / 7
  when 'iso_week' then (end_::date - date '0001-01-01') / 7 - (start_::date - date '0001-01-01') / 7
  when 'hour' then
    (extract(epoch from date_trunc('hour', end_)) - extract(epoch from date_trunc('hour', start_)))::bigint / 3600
  when 'minute' then
    (extract(epoch from date_trunc('minute', end_)) - extract(epoch from date_trunc('minute', start_)))::bigint / 60
  when 'second' then
    (extract(epoch from date_trunc('second', end_)) - extract(epoch from date_trunc('second', start_)))::bigint
  when 'millisecond' then
    ((extract(epoch from date_trunc('milliseconds', end_))
      - extract(epoch from date_trunc('milliseconds', start_))) * 1000)::bigint
  when 'microsecond' then ((extract(epoch from end_) - extract(epoch from start_)) * 1000000)::bigint
  when 'nanosecond' then tsql.datediff_bigint((extract(epoch from end_) - extract(epoch from start_)) * 1000000000)
end;
comment on function tsql.datediff(text, timestamp, timestamp) is
  'The number of boundaries of the part between the two: DATEDIFF.';

create or replace function tsql.datepart(part text, moment timestamp) returns integer
language sql immutable strict parallel safe
return case part
  when 'year' then extract(year from moment)
  when 'quarter' then extract(quarter from moment)
  when 'month' then extract(month from moment)
  when 'dayofyear' then extract(doy from moment)
  when 'day' then extract(day from moment)
  -- 1 January is in week 1
  when 'week' then (extract(doy from moment)::integer - 1 + tsql.day_of_week(date_trunc('year', moment))) / 7 + 1
  when 'weekday' then tsql.day_of_week(moment) + 1
  when 'hour' then extract(hour from moment)
  when 'minute' then extract(minute from moment)
  when 'second' then trunc(extract(second from moment))
  when 'millisecond' then (extract(microseconds from moment)::bigint % 1000000) / 1000
  when 'microsecond' then extract(microseconds from moment)::bigint % 1000000
  when 'nanosecond' then (extract(microseconds from moment)::bigint % 1000000) * 1000
  when 'iso_week' then extract(week from moment)
  when 'iso_year' then extract(isoyear from moment)
  when 'iso_weekday' then extract(isodow from moment)
end::integer;

create or replace function tsql.datename(part text, moment timestamp) returns text
language sql immutable strict parallel safe
return case part when 'month' then to_char(moment, 'FMMonth') when 'weekday' then to_char(moment, 'FMDay')
  else tsql.datepart(part, moment)::text end;

create or replace function tsql.eomonth(moment timestamp, months integer) returns date
language sql immutable strict parallel safe
return (tsql.dateadd('month', months, date_trunc('month', moment)) + interval '1 month' - interval '1 day')::date;

create or replace function tsql.datefromparts(y integer, m integer, d integer) returns date
language plpgsql immutable strict parallel safe
as $$
begin
  return make_date(y, m, d);
exception when datetime_field_overflow then
  perform tsql.fail(289, 'Cannot construct data type date, some of the arguments have values which are not valid.');
end
$$;

create or replace function tsql.delay(text_ text) returns double precision
language plpgsql immutable strict
as $$
declare
  -- hours may have three digits
  clock interval := tsql.read_clock(regexp_replace(text_, '^\s*0(\d\d:)', '\1'));
begin
  if clock is null then
    perform tsql.fail(148, format('Incorrect time syntax in time string ''%s'' used with WAITFOR.', text_));
  end if;
  return extract(epoch from clock);
end
$$;
comment on function tsql.delay(text) is 'Seconds of WAITFOR DELAY.';
create or replace function tsql.delay(moment timestamp) returns double precision
language sql immutable strict return extract(epoch from moment::time);

create or replace function tsql.days_later(moment timestamp, days numeric) returns timestamp
language sql immutable strict parallel safe
return tsql.in_range(moment + interval '1 microsecond' * round(days * 86400000000));

create or replace function tsql.until(moment timestamp) returns double precision
language sql stable strict
return extract(epoch from moment::time - tsql.getdate()::time)
       + case when moment::time < tsql.getdate()::time then 86400 else 0 end;
comment on function tsql.until(timestamp) is 'Seconds of WAITFOR TIME: until the clock shows that time.';
create or replace function tsql.until(text_ text) returns double precision
language plpgsql stable strict
as $$
declare
  clock interval := tsql.read_clock(text_);
begin
  if clock is null then
    perform tsql.fail(148, format('Incorrect time syntax in time string ''%s'' used with WAITFOR.', text_));
  end if;
  return tsql.until(timestamp '2000-01-01' + clock);
end
$$;
