create or replace function ringlog.tell_event(
  table_name text,
  spool text,
  number bigint,
  "time" timestamptz,
  kind text,
  words text,
  until timestamptz default null,
  rows bigint default null
)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into ringlog.event (table_name, spool, number, "time", kind, words, until, rows)
  values (table_name, spool, number, "time", kind, words, until, rows)
  on conflict do nothing;
  select 0
$$;

comment on function ringlog.tell_event is
$$Stores an event of a table's readings: gap, clock, thinned, refused, disconnected, connected, alarm. Spool and number
identify it: sent again, it is stored once.$$;

revoke all on function ringlog.tell_event from public;
grant execute on function ringlog.tell_event to daq_writer;
