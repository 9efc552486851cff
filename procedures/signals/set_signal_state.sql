create or replace function ringlog.set_signal_state(signal text, state text, change text) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal(change || '_signal', signal);
begin
  update ringlog.sample_signal as known set state = state where known.number = number and known.state <> state;
  if found then
    perform ringlog.note_signal_change(known.table_name, known.signal, change)
    from ringlog.sample_signal as known where known.number = number;
  end if;
  return 0;
end
$$;
comment on function ringlog.set_signal_state is
$$The common part of pause_signal and resume_signal: gives a signal of a table of samples this state, unless it has it, and
notes the change.$$;
