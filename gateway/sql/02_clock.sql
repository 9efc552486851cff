-- The clock, its rounding, and what SET DATEFIRST and SET DATEFORMAT have set.

create or replace function tsql.rounded(moment timestamp) returns timestamp
language sql immutable strict parallel safe
return date_trunc('second', moment)
  + interval '1 millisecond'
    * round(round((extract(microseconds from moment)::bigint % 1000000) * 3 / 10000.0) * 10 / 3.0);
comment on function tsql.rounded(timestamp) is
  'To the nearest 1/300 s, as datetime has it: milliseconds end in 0, 3 and 7.';

-- The clock. A statement of a batch asks for the time it began at; in a procedure, which is one statement to
-- PostgreSQL, queries write (select tsql.getdate(clock_timestamp())): asked once for each, and an index serves.
create or replace function tsql.getdate(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return tsql.rounded(moment::timestamp);
create or replace function tsql.getutcdate(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return tsql.rounded(moment at time zone 'UTC');
create or replace function tsql.sysdatetime(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return moment::timestamp;
create or replace function tsql.sysutcdatetime(moment timestamptz default statement_timestamp()) returns timestamp
language sql stable parallel safe return moment at time zone 'UTC';

-- What SET DATEFIRST and SET DATEFORMAT have set, and the clock that a time without a zone is of. They are called
-- immutable though a session may set them, so that PostgreSQL knows a time in a text, and which partitions it is in, when
-- it plans: who sets them discards the plans, as the gateway does. The zone is the database's for good.
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
comment on function tsql.date_order() is 'The order in which dates in texts are read: mdy, or as SET says, set dmy and so on.';
create or replace function tsql.instant(moment timestamp) returns timestamptz
language plpgsql immutable strict parallel safe
as $$
begin
  return moment::timestamptz;
end
$$;
comment on function tsql.instant(timestamp) is 'When the facility''s clock showed a time.';
create or replace function tsql.day_of_week(moment timestamp) returns integer
language sql immutable strict parallel safe
return (extract(dow from moment)::integer - tsql.datefirst() % 7 + 7) % 7;
comment on function tsql.day_of_week(timestamp) is 'From 0 for the first day of a week.';
