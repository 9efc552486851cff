create or replace function ringlog.report_signals(table_name text, states text)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(report_signals.table_name);
  insert into ringlog.signal_state as kept (number, connected, since, trouble, dropped, policy)
  select state.number, state.connected, state.since, state.trouble, state.dropped, state.policy
  from json_to_recordset(report_signals.states::json) as state(
    number integer, connected boolean, since timestamptz, trouble text, dropped bigint, policy text
  )
  join ringlog.sample_signal as known using (number)
  where known.table_name = report_signals.table_name
  on conflict on constraint signal_state_pkey do update
  set connected = excluded.connected, since = excluded.since, trouble = excluded.trouble,
    dropped = kept.dropped + excluded.dropped, policy = excluded.policy;
  select 0
$$;

comment on function ringlog.report_signals(text, text) is
$$Stores what a writer knows of signals of a table of samples: a JSON array of objects with number, connected, since
when, trouble (null: none), the number of samples dropped since the last report, and policy (null: none). Error: the caller may not write
the table (42501).$$;

revoke all on function ringlog.report_signals(text, text) from public;
grant execute on function ringlog.report_signals(text, text) to daq_writer, daq_table_writer;
