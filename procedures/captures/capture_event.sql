create or replace function ringlog.capture_event(
  name text, at timestamptz, before double precision, after double precision, tables text, note text default '',
  keep_days double precision default null, late double precision default 3600, out capture integer
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
#variable_conflict use_variable
declare
  caller constant record := ringlog.caller();
  begins timestamptz;
  ends timestamptz;
  late_until timestamptz;
  wanted text[];
  each text;
begin
  if coalesce(btrim(name), '') = '' then
    raise exception 'capture_event: a capture must have a name' using errcode = 'invalid_parameter_value';
  end if;
  if (before >= 0 and after >= 0 and before + after > 0 and before + after <= {capture_seconds}
    and late between 0 and 31 * 86400 and coalesce(keep_days between 0 and {capture_days}, true)) is not true then
    raise exception 'capture_event: before % and after % must be seconds, together at most {capture_seconds}, late (%) at most 31 days of seconds, keep_days (%) at most {capture_days}',
      before, after, late, keep_days using errcode = 'invalid_parameter_value';
  end if;
  if (isfinite(at) and at <= clock_timestamp() + interval '1 minute') is not true then
    raise exception 'capture_event: at % must be a time that is not in the future', at
      using errcode = 'invalid_parameter_value';
  end if;
  begins := at - make_interval(secs => before);
  ends := at + make_interval(secs => after);
  late_until := greatest(ends, clock_timestamp()) + make_interval(secs => late);
  wanted := ringlog.demand_capturable(tables, begins, ends);

  lock table ringlog.one_capture in exclusive mode;
  insert into ringlog.capture as made (name, "time", begins, ends, late_until, expires, note, login, program)
  values (
    name, at, begins, ends, late_until, clock_timestamp() + keep_days * interval '1 day', coalesce(note, ''),
    caller.login, caller.program
  )
  returning made.number into capture;
  foreach each in array wanted loop
    insert into ringlog.captured_table (capture, table_name, is_of_samples, due, filtered)
    select capture, known.table_name, known.is_of_samples, now(), case when known.is_of_samples then (
      select json_object_agg(policy, signals)::text
      from (
        select coalesce(state.policy, ''), json_agg(signal.signal order by signal.signal)
        from ringlog.sample_signal as signal
        left join ringlog.signal_state as state on state.number = signal.number
        where signal.table_name = each and signal.state <> 'retired'
        group by 1
      ) as filtered (policy, signals)
    ) end
    from ringlog.every_table as known where known.table_name = each;
    perform ringlog.copy_captured(each);
  end loop;
end
$$;
comment on function ringlog.capture_event is
$$Keeps the rows of tables around a moment, from `before` seconds before `at` to `after` seconds after it, in
capture.<table>; returns the capture's number. `tables` are names of tables and groups, separated by commas. The rows that
exist are copied now, the others by housekeeping; rows that arrive late are added for `late` seconds more. After
`keep_days` the capture is deleted; null: never. Errors, which keep nothing: no name, a time in the future, or seconds out
of range (22023), no such table (42P01), a table on another server (RL006), a ring that is too small or has lost rows of
that time (55000), a week in the archive (RL003), the disk is nearly full (53100), capture.<table> has a column of another
type (42804).$$;
grant execute on function ringlog.capture_event to event_recorder;
