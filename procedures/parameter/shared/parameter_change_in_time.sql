create or replace function ringlog.parameter_change_in_time() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if clock_timestamp() > new."time" + interval '50 seconds' then
    raise exception 'a change of parameters must be committed within 50 seconds: nothing was changed, do it again'
      using errcode = 'serialization_failure';
  end if;
  return null;
end
$$;
comment on function ringlog.parameter_change_in_time is
$$At the end of a transaction: refuses a change that is not committed within 50 seconds of its time.$$;
