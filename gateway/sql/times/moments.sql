-- Times made of their parts, and truncated to one of them.

create or replace function tsql.from_parts(
  y integer, m integer, d integer, hour integer, minute integer, second integer, micros integer, what text
) returns timestamp
language plpgsql immutable strict parallel safe
as $$
begin
  if hour not between 0 and 23 or minute not between 0 and 59 or second not between 0 and 59
     or y not between 1 and 9999 then
    raise datetime_field_overflow;
  end if;
  return make_timestamp(y, m, d, hour, minute, second) + make_interval(secs => micros / 1e6);
exception when datetime_field_overflow then
  perform tsql.fail(289, format(
    'Cannot construct data type %s, some of the arguments have values which are not valid.', what));
end
$$;

create or replace function tsql.datetimefromparts(
  y integer, m integer, d integer, hour integer, minute integer, second integer, millis integer
) returns timestamp
language sql immutable strict parallel safe
return case when millis between 0 and 999 and y >= 1753
  then tsql.to_datetime(tsql.from_parts(y, m, d, hour, minute, second, millis * 1000, 'datetime'))
  else tsql.from_parts(0, m, d, hour, minute, second, 0, 'datetime') end;

create or replace function tsql.smalldatetimefromparts(y integer, m integer, d integer, hour integer, minute integer)
returns timestamp
language sql immutable strict parallel safe
return tsql.from_parts(case when y between 1900 and 2079 then y else 0 end, m, d, hour, minute, 0, 0, 'smalldatetime');

create or replace function tsql.micros(fraction integer, digits integer, what text) returns integer
language plpgsql immutable strict parallel safe
as $$
begin
  if digits not between 0 and 7 then
    perform tsql.fail(10760, format('Scale argument is not valid. Valid expressions for data type %s scale argument are '
      'integer constants and integer constant expressions.', what));
  end if;
  if fraction < 0 or fraction >= 10 ^ digits then
    perform tsql.fail(289, format(
      'Cannot construct data type %s, some of the arguments have values which are not valid.', what));
  end if;
  return round(fraction::numeric * 1000000 / 10 ^ digits);
end
$$;
comment on function tsql.micros(integer, integer, text) is 'A fraction of a second with this many decimals, in microseconds.';

create or replace function tsql.datetime2fromparts(
  y integer, m integer, d integer, hour integer, minute integer, second integer, fraction integer, digits integer
) returns timestamp
language sql immutable strict parallel safe
return tsql.from_parts(y, m, d, hour, minute, second, tsql.micros(fraction, digits, 'datetime2'), 'datetime2');

create or replace function tsql.timefromparts(
  hour integer, minute integer, second integer, fraction integer, digits integer
) returns time
language sql immutable strict parallel safe
return tsql.from_parts(1900, 1, 1, hour, minute, second, tsql.micros(fraction, digits, 'time'), 'time')::time;

create or replace function tsql.datetrunc(part text, moment timestamp) returns timestamp
language sql immutable strict parallel safe
return case part
  when 'dayofyear' then date_trunc('day', moment)
  when 'week' then date_trunc('day', moment) - make_interval(days => tsql.day_of_week(moment))
  when 'iso_week' then date_trunc('week', moment)
  when 'millisecond' then date_trunc('milliseconds', moment)
  when 'microsecond' then date_trunc('microseconds', moment)
  else date_trunc(part, moment) end;
comment on function tsql.datetrunc(text, timestamp) is 'Weeks begin on the day of SET DATEFIRST.';
create or replace function tsql.datetrunc(part text, moment tsql.datetime) returns timestamp
language sql immutable strict parallel safe
return case part when 'microsecond' then tsql.bad_part(part, 'datetrunc', 'datetime')::timestamp
  else tsql.datetrunc(part, moment::timestamp) end;
create or replace function tsql.datetrunc(part text, moment tsql.smalldatetime) returns timestamp
language sql immutable strict parallel safe
return case when part in ('millisecond', 'microsecond') then tsql.bad_part(part, 'datetrunc', 'smalldatetime')::timestamp
  else tsql.datetrunc(part, moment::timestamp) end;
create or replace function tsql.datetrunc(part text, day date) returns date
language sql immutable strict parallel safe
return tsql.datetrunc(part, day::timestamp)::date;
create or replace function tsql.datetrunc(part text, clock time) returns time
language sql immutable strict parallel safe
return tsql.datetrunc(part, date '1900-01-01' + clock)::time;
create or replace function tsql.datetrunc(part text, written text) returns timestamp
language sql immutable strict parallel safe
return tsql.datetrunc(part, tsql.moment(written));
