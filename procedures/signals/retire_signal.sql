create or replace function ringlog.retire_signal(signal text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal('retire_signal', signal);
  of_table constant text := (select known.table_name from ringlog.sample_signal as known where known.number = number);
begin
  update ringlog.signal as known set valid_to = clock_timestamp()
  where known.table_name = of_table and known.column_name = number::text
    and coalesce(known.valid_to, 'infinity') = 'infinity';
  update ringlog.sample_signal as known set state = 'retired' where known.number = number;
  perform ringlog.note_signal_change(of_table, signal, 'retire');
  return 0;
end
$$;
comment on function ringlog.retire_signal is
$$Ends a signal of a table of samples: it is not written any more; its samples can be read. add_signal takes it up again.
Error: no such signal now (42704).$$;
grant execute on function ringlog.retire_signal to signal_archivist;
