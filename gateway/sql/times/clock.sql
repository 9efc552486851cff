-- The clock, its rounding, and the settings of SET DATEFIRST and SET DATEFORMAT.

create or replace function tsql.rounded(moment timestamp) returns timestamp
language sql immutable strict parallel safe
return date_trunc('second', moment)
  + interval '1 millisecond'
    * round(round((extract(microseconds from moment)::bigint % 1000000) * 3 / 10000.0) * 10 / 3.0);
comment on function tsql.rounded(timestamp) is
  'To the nearest 1/300 s, as datetime has it: milliseconds end in 0, 3 and 7.';

-- The clock. A statement of a batch uses the time of its start. A procedure is one statement for PostgreSQL, so its
-- queries use (select tsql.getdate(clock_timestamp())), which is evaluated once for each query and can use an index.
create or replace function tsql.getdate(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return tsql.rounded(moment::timestamp);
create or replace function tsql.getutcdate(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return tsql.rounded(moment at time zone 'UTC');
create or replace function tsql.sysdatetime(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return moment::timestamp;
create or replace function tsql.sysutcdatetime(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return moment at time zone 'UTC';

-- The settings of SET DATEFIRST and SET DATEFORMAT, and the zone of times without one. These functions are declared
-- immutable although a session may change the settings, so that PostgreSQL can evaluate a time in a text when it plans
-- and exclude partitions. After a change of a setting the plans must be discarded, as the gateway does. The zone of a
-- database never changes.
create or replace function tsql.datefirst() returns integer
language plpgsql immutable parallel safe
as $$
begin
  return coalesce(nullif(current_setting('tsql.datefirst', true), '')::integer, 7);
end
$$;
comment on function tsql.datefirst() is '@@datefirst: the first day of a week, 1 Monday to 7 Sunday.';
create or replace function tsql.date_order() returns text
language plpgsql immutable parallel safe
as $$
begin
  return coalesce('set ' || nullif(nullif(current_setting('tsql.dateformat', true), ''), 'mdy'), 'mdy');
end
$$;
comment on function tsql.date_order() is 'The order of day, month and year in texts: mdy by default, "set dmy" and so on after SET DATEFORMAT.';
create or replace function tsql.instant(moment timestamp) returns timestamptz
language plpgsql immutable strict parallel safe
as $$
declare
  at timestamptz := moment;
begin
  if at::timestamp <> moment then
    perform tsql.fail(8114, format('The local time %s does not exist, because the clocks were set ahead past it: '
      'give UTC, or the time with its offset, as a datetimeoffset.', moment));
  end if;
  return at;
end
$$;
comment on function tsql.instant(timestamp) is
$$The instant of a time in the facility's zone, the later one of a time that occurs twice; error 8114 for a time that the
clocks were set ahead past.$$;
create or replace function tsql.day_of_week(moment timestamp) returns integer
language sql immutable strict parallel safe
return (extract(dow from moment)::integer - tsql.datefirst() % 7 + 7) % 7;
comment on function tsql.day_of_week(timestamp) is 'The day of the week, 0 for the first one.';
