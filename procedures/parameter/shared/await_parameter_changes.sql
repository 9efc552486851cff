create or replace function ringlog.await_parameter_changes("time" timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if await_parameter_changes."time" is null then
    raise exception 'a time must be given' using errcode = 'null_value_not_allowed';
  end if;
  -- older changes have ended: see parameter_change_in_time
  if await_parameter_changes."time" > clock_timestamp() - interval '1 minute' and not pg_is_in_recovery() then
    -- the exception releases the lock
    begin
      lock table ringlog.parameter_table in share mode;
      raise exception using errcode = 'RLOCK';
    exception when sqlstate 'RLOCK' then
      null;
    end;
  end if;
end
$$;
comment on function ringlog.await_parameter_changes is
$$Returns when no uncommitted change of parameters can have this time or an earlier one.$$;
grant execute on function ringlog.await_parameter_changes to daq_reader, parameter_writer;
