create or replace function ringlog.correct_mark(
  mark integer, text text default null, "time" timestamptz default null, until timestamptz default null,
  names text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
begin
  perform ringlog.record_mark(
    'correct_mark', correct_mark.mark, correct_mark."time", correct_mark.until, correct_mark.text, correct_mark.names, false
  );
  return 0;
end
$$;
comment on function ringlog.correct_mark is
$$Stores another version of a mark, also of a withdrawn one, which is shown again; null: as before. mark_history has all
versions. Errors: as add_mark, no such mark (42704).$$;
grant execute on function ringlog.correct_mark to event_recorder;
