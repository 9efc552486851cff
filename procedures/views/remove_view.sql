create or replace function ringlog.remove_view(name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
#variable_conflict use_variable
begin
  delete from ringlog.saved_view as each where each.name = name and each.owner = (ringlog.caller()).login;
  if not found then
    raise exception 'remove_view: you have no view ''%''', name using errcode = 'undefined_object';
  end if;
  return 0;
end
$$;
comment on function ringlog.remove_view is $$Deletes a view of the caller. Error: the caller has none of this name (42704).$$;
grant execute on function ringlog.remove_view to event_recorder;
