create or replace function ringlog.captured_signals(capture integer)
returns table (signal text, table_name text, column_name text, type text, is_of_samples boolean, "time" timestamptz)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select known.signal, each.table_name, known.column_name, known.type, each.is_of_samples, event."time"
  from ringlog.capture as event
  join ringlog.captured_table as each on each.capture = event.number
  join ringlog.signal as known on ringlog.table_now(known.table_name) = ringlog.table_now(each.table_name)
    and known.valid_from <= event.made and event.made < coalesce(known.valid_to, 'infinity')
  where event.number = captured_signals.capture
  order by each.table_name, known.signal
$$;
comment on function ringlog.captured_signals is
$$The signals of a capture as they were named when it was registered, and the columns that have them in capture.<table>;
of a table of samples the column is the signal's number. Time is the event's.$$;
grant execute on function ringlog.captured_signals to daq_reader, daq_table_reader;
