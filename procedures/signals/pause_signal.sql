create or replace function ringlog.pause_signal(signal text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal('pause_signal', signal);
begin
  update ringlog.sample_signal as known set state = 'paused' where known.number = number and known.state <> 'paused';
  if found then
    perform ringlog.note_signal_change(known.table_name, known.signal, 'pause')
    from ringlog.sample_signal as known where known.number = number;
  end if;
  return 0;
end
$$;
comment on function ringlog.pause_signal is
$$Pauses a signal of a table of samples: its samples are dropped, with a message to the caller, until resume_signal.
Error: there is no such signal (42704).$$;
grant execute on function ringlog.pause_signal to signal_archivist;
