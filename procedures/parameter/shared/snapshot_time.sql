create or replace function ringlog.snapshot_time(asking text, name text) returns timestamptz
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  found_time timestamptz;
begin
  select known."time" into found_time from ringlog.parameter_snapshot as known where known.name = snapshot_time.name;
  if not found then
    raise exception '%: there is no snapshot ''%''', asking, snapshot_time.name
      using errcode = 'no_data_found', hint = 'snapshots lists them.';
  end if;
  return found_time;
end
$$;
comment on function ringlog.snapshot_time is
$$The time of a snapshot, for other procedures. Error: no such snapshot (P0002).$$;
grant execute on function ringlog.snapshot_time to daq_reader, parameter_writer;
