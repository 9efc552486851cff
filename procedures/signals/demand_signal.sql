create or replace function ringlog.demand_signal(procedure text, signal text) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number integer;
begin
  -- one change at a time
  lock table ringlog.sample_signal in share row exclusive mode;
  select known.number into number
  from ringlog.sample_signal as known where known.signal = signal and known.state <> 'retired';
  if number is null then
    if exists (select from ringlog.signal_elsewhere as known where known.signal = signal and known.valid_to is null) then
      raise exception '%: signal ''%'' is on a node', procedure, signal
        using errcode = 'object_not_in_prerequisite_state', hint = 'ringlog signal changes signals there.';
    end if;
    raise exception '%: no table of samples has a signal ''%'' now', procedure, signal
      using errcode = 'undefined_object', hint = 'list_signals lists them.';
  end if;
  return number;
end
$$;
comment on function ringlog.demand_signal is
$$The number of a signal that a table of samples has now, for a procedure that changes it. Error: there is none (42704).$$;
