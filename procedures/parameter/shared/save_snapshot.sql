create or replace function ringlog.save_snapshot(
  name text, comment text default null, "time" timestamptz default null, out saved timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  caller constant record := ringlog.caller();
begin
  if coalesce(btrim(save_snapshot.name), '') = '' then
    raise exception 'save_snapshot: a snapshot must have a name' using errcode = 'invalid_parameter_value';
  end if;
  if save_snapshot."time" > clock_timestamp() then
    raise exception 'save_snapshot: % is in the future', save_snapshot."time" using errcode = 'invalid_parameter_value';
  end if;
  -- a snapshot of now: nobody changes anything until it has its time
  perform ringlog.lock_parameters();
  saved := coalesce(
    save_snapshot."time",
    greatest(clock_timestamp(), (select max(made."time") from ringlog.parameter_change as made))
  );
  insert into ringlog.parameter_snapshot (name, "time", login, program, comment)
  values (
    save_snapshot.name,
    saved,
    caller.login,
    caller.program,
    save_snapshot.comment
  );
exception when unique_violation then
  raise exception 'save_snapshot: there is a snapshot ''%'' already', save_snapshot.name
    using errcode = 'unique_violation', hint = 'Choose another name, or call forget_snapshot first.';
end
$$;
comment on function ringlog.save_snapshot is
$$Gives the state of all parameter tables a name: the current one, or that of a past time. Returns the time. Errors: the
name exists (23505), no name, or a future time (22023).$$;
grant execute on function ringlog.save_snapshot to parameter_writer;
