create or replace function ringlog.snapshots(pattern text default '%')
returns table (name text, "time" timestamptz, login text, program text, comment text)
language sql stable parallel safe
as $$
  select known.name, known."time", known.login, known.program, known.comment
  from ringlog.parameter_snapshot as known
  where known.name like snapshots.pattern
  order by known."time", known.name
$$;
comment on function ringlog.snapshots is
$$The named states of all parameter tables whose name is like the pattern, oldest first.$$;
grant execute on function ringlog.snapshots to daq_reader, parameter_writer;
