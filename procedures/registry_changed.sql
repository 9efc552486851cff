create or replace function ringlog.registry_changed()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update ringlog.registry_state set version = gen_random_uuid();
  return null;
end
$$;

comment on function ringlog.registry_changed() is
$$Gives the registry another version: readers keep what they know of signals while it is the same.$$;

revoke all on function ringlog.registry_changed() from public;
