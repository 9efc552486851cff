create or replace function ringlog.registry_changed() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update ringlog.registry_state set version = gen_random_uuid();
  return null;
end
$$;
comment on function ringlog.registry_changed is
$$Gives the registry another version: readers cache signals until it changes.$$;
