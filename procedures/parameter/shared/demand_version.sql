create or replace function ringlog.demand_version(
  row_shown text, there integer, since bigint, expected integer
) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  other ringlog.parameter_change;
begin
  if expected is null or expected = coalesce(there, 0) then
    return;
  end if;
  if there is null then
    raise exception '% was removed, and had version % when it was read: nothing was changed', row_shown, expected
      using errcode = 'serialization_failure', hint = 'Read it again.';
  end if;
  select known.* into other from ringlog.parameter_change as known where known.change = since;
  raise exception '% has version % and not %, by a change of %: nothing was changed',
    row_shown, there, expected,
    format('%s%s at %s%s', other.login, ' with ' || nullif(other.program, ''), other."time", ' (' || other.comment || ')')
    using errcode = 'serialization_failure', hint = 'Read it again.';
end
$$;
comment on function ringlog.demand_version is
$$Refuses a change of a row whose version is not the one that the caller has read (40001).$$;
