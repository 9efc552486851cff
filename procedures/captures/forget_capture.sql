create or replace function ringlog.forget_capture(capture integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_variable
begin
  lock table ringlog.one_capture in exclusive mode;
  if not exists (select from ringlog.capture as each where each.number = capture) then
    raise exception 'forget_capture: there is no capture %', capture using errcode = 'undefined_object';
  end if;
  perform ringlog.delete_captured(capture);
  return 0;
end
$$;
comment on function ringlog.forget_capture is
$$Deletes a capture and its rows. Error: there is no such capture (42704).$$;
grant execute on function ringlog.forget_capture to event_recorder;
