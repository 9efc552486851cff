create or replace function ringlog.save_view(name text, state text, description text default '', names text default null)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
#variable_conflict use_variable
declare
  caller constant record := ringlog.caller();
begin
  if (length(btrim(name)) between 1 and 200 and length(state) between 1 and 100000
    and coalesce(length(description) <= 10000, true)) is not true then
    raise exception 'save_view: a view must have a name (at most 200 characters), a state (100000); its description has at most 10000'
      using errcode = 'invalid_parameter_value';
  end if;
  insert into ringlog.saved_view as each (name, description, state, signals, owner, program)
  values (
    name, coalesce(description, ''), state, string_to_array(nullif(names, ''), e'\n'), caller.login, caller.program
  )
  on conflict on constraint saved_view_pkey do update
  set description = excluded.description, state = excluded.state, signals = excluded.signals,
    program = excluded.program, made = excluded.made
  where each.owner = excluded.owner;
  if not found then
    raise exception 'save_view: view ''%'' belongs to another login', name using errcode = 'duplicate_object';
  end if;
  return 0;
end
$$;
comment on function ringlog.save_view is
$$Keeps a state of the page by name, or replaces the caller's view of this name. `state` is the part of the page's address
behind #, `names` are its signals, one a line: who may read none of them does not see the view; null: everyone does. Errors:
no name or state, or too long (22023), a view of another login has this name (42710).$$;
grant execute on function ringlog.save_view to event_recorder;
