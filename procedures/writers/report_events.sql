create or replace function ringlog.report_events(table_name text, spool text, events text) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(report_events.table_name);
  insert into ringlog.event (table_name, spool, number, "time", kind, message, until, rows)
  select ringlog.table_now(report_events.table_name), report_events.spool, event.number, event."time", event.kind, event.message,
    event.until, event.rows
  from json_to_recordset(report_events.events::json) as event(
    number bigint, "time" timestamptz, kind text, message text, until timestamptz, rows bigint
  )
  on conflict do nothing;
  select 0
$$;
comment on function ringlog.report_events is
$$Stores events of a table's readings, all of them or none: gap, clock, thinned, damaged, refused, disconnected, connected, alarm.
`events` is a JSON array of objects with number, time, kind, message, until and rows. Spool and number identify an event:
sent again, it is stored once. Error: the caller may not write the table (42501).$$;
grant execute on function ringlog.report_events to daq_writer, daq_table_writer;
