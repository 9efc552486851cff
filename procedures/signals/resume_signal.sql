create or replace function ringlog.resume_signal(signal text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal('resume_signal', signal);
begin
  update ringlog.sample_signal as known set state = 'active' where known.number = number and known.state <> 'active';
  if found then
    perform ringlog.note_signal_change(known.table_name, known.signal, 'resume')
    from ringlog.sample_signal as known where known.number = number;
  end if;
  return 0;
end
$$;
comment on function ringlog.resume_signal is
$$The signal of a table of samples is written again after pause_signal. Error: no such signal now (42704).$$;
grant execute on function ringlog.resume_signal to signal_archivist;
