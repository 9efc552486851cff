create or replace function {procedure}(
  signal text,
  "time" timestamptz,
  value {type},
  severity smallint,
  status smallint,
  nanoseconds smallint,
  _epoch bigint
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.number_of_signal({table}, signal);
begin
  if isfinite("time") is not true then
    if "time" is null then
      raise exception '%: time must not be null', {name} using errcode = 'not_null_violation';
    end if;
    raise exception '%: time must not be %', {name}, "time" using errcode = 'datetime_field_overflow';
  end if;
  if "time" not between '1970-01-01 00:00+00' and '2262-01-01 00:00+00' then
    raise exception '%: time must be of 1970 to 2261, not %', {name}, "time" using errcode = 'datetime_field_overflow';
  end if;
  if coalesce(nanoseconds, 0) not between 0 and 999 then
    raise exception '%: nanoseconds must be 0 to 999, not %', {name}, nanoseconds
      using errcode = 'invalid_parameter_value';
  end if;
  -- set by the gateway for a time without a zone in the hour that occurs twice
  if current_setting('tsql.repeated', true) <> '' then
    "time" := ringlog.likely_reading(
      "time" - make_interval(secs => (current_setting('tsql.repeated')::json ->> 'time')::double precision), "time", null, 0
    );
  end if;
  return {batch}(
    array[number], array[ringlog.nanoseconds("time") + coalesce(nanoseconds, 0)], {one_value}, array[severity],
    array[status], _epoch{one_length}
  );
end
$$;
comment on function {procedure} is
$$Stores a sample as put_<table> does, for the writer that has the table's claim: see claim_writer, which returns the
epoch. Errors: those of put_<table>, and another writer has taken the table over (RL001); they write nothing.$$;
grant execute on function {procedure} to daq_writer;
