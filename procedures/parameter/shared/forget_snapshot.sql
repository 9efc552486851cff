create or replace function ringlog.forget_snapshot(name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
begin
  delete from ringlog.parameter_snapshot as known where known.name = forget_snapshot.name;
  if not found then
    raise exception 'forget_snapshot: there is no snapshot ''%''', forget_snapshot.name
      using errcode = 'no_data_found', hint = 'snapshots lists them.';
  end if;
  return 0;
end
$$;
comment on function ringlog.forget_snapshot is
$$Deletes the name of a state. The state itself can still be read by its time.$$;
grant execute on function ringlog.forget_snapshot to parameter_writer;
