create or replace function ringlog.add_mark(
  "time" timestamptz, text text, until timestamptz default null, names text default null, out mark integer
)
language sql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
  select ringlog.record_mark('add_mark', null, add_mark."time", add_mark.until, add_mark.text, add_mark.names, false)
$$;
comment on function ringlog.add_mark is
$$Adds a note at a time, or from `time` to `until`, with the caller's login; returns its number. `names` are signals, one a
line; null: all. Errors: no text, or times that are not in order (22023), no such signal (42704).$$;
grant execute on function ringlog.add_mark to event_recorder;
