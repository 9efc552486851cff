create or replace function ringlog.tell_events(table_name text, spool text, events text)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into ringlog.event (table_name, spool, number, "time", kind, words, until, rows)
  select tell_events.table_name, tell_events.spool, event.number, event."time", event.kind, event.words,
    event.until, event.rows
  from json_to_recordset(tell_events.events::json) as event(
    number bigint, "time" timestamptz, kind text, words text, until timestamptz, rows bigint
  )
  on conflict do nothing;
  select 0
$$;

comment on function ringlog.tell_events is
$$Stores many events as tell_event stores one, all of them or none. `events` is a JSON array of objects with number,
time, kind, words, until and rows.$$;

revoke all on function ringlog.tell_events from public;
grant execute on function ringlog.tell_events to daq_writer;
