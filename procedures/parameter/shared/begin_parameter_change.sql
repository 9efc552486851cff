create or replace function ringlog.begin_parameter_change(words text, out change bigint, out changed timestamptz)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  latest ringlog.parameter_change;
  caller constant record := ringlog.caller();
begin
  select known.* into latest from ringlog.parameter_change as known order by known.change desc limit 1;
  if latest.transaction = pg_current_xact_id() and latest."time" >= now() then
    change := latest.change;
    changed := latest."time";
    if words is not null and words is distinct from latest.comment then
      update ringlog.parameter_change as known
      set comment = concat_ws('; ', latest.comment, words)
      where known.change = latest.change;
    end if;
    return;
  end if;
  if latest."time" > clock_timestamp() + interval '1 minute' then
    raise exception 'the server''s clock is behind the latest change of parameters, which was made at %', latest."time"
      using errcode = 'object_not_in_prerequisite_state', hint = 'Set the clock.';
  end if;
  insert into ringlog.parameter_change as begun ("time", login, program, machine, comment, transaction)
  values (
    greatest(clock_timestamp(), latest."time" + interval '1 microsecond'),
    caller.login,
    caller.program,
    caller.machine,
    words,
    pg_current_xact_id()
  )
  returning begun.change, begun."time" into change, changed;
end
$$;
comment on function ringlog.begin_parameter_change is
$$Begins the change of this transaction: its number, and its time, which is later than that of every change before. The
caller holds the lock of parameters.$$;
