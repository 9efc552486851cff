create or replace function ringlog.parameter_changes(
  from_time timestamptz default null, to_time timestamptz default null
) returns table (change bigint, "time" timestamptz, login text, program text, machine text, comment text)
language sql stable parallel safe
as $$
  select made.change, made."time", made.login, made.program, made.machine, made.comment
  from ringlog.parameter_change as made
  where (parameter_changes.from_time is null or made."time" >= parameter_changes.from_time)
    and (parameter_changes.to_time is null or made."time" < parameter_changes.to_time)
  order by made.change
$$;
comment on function ringlog.parameter_changes is
$$The changes of parameters from from_time (inclusive) to to_time (exclusive), oldest first: who made them, with which
program, on which machine, and why.$$;
grant execute on function ringlog.parameter_changes to daq_reader, parameter_writer;
