create or replace function ringlog.note_signal_change(table_name text, signal text, change text, detail text default '')
returns void
language sql set search_path = pg_catalog, pg_temp
as $$
  insert into ringlog.signal_change (login, program, table_name, signal, change, detail)
  values (
    (ringlog.caller()).login,
    current_setting('application_name'),
    note_signal_change.table_name, note_signal_change.signal, note_signal_change.change, note_signal_change.detail
  )
$$;
comment on function ringlog.note_signal_change is
$$Records a change of the signals of a table of samples: its time, and the caller's login and program.$$;
