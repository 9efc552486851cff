create or replace function ringlog.get_waveforms(
  name text, from_time timestamptz default null, to_time timestamptz default null, max_rows integer default null,
  every_nth integer default null
) returns table ("time" timestamptz, value double precision[])
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  if every_nth < 1 then
    raise exception 'get_waveforms: every_nth must be 1 or more, not %', every_nth
      using errcode = 'invalid_parameter_value';
  end if;
  return query
    select waveform."time", waveform.value
    from ringlog.waveforms_of(
      name, coalesce(from_time, '-infinity'), coalesce(to_time, 'infinity'), false, max_rows, every_nth
    ) as waveform;
end
$$;
comment on function ringlog.get_waveforms is
$$The waveforms of a signal from from_time (inclusive) to to_time (exclusive), oldest first, at most max_rows of them; a
bound that is omitted or null does not limit. every_nth returns the first of them and every nth after it. The points are
of type double precision; a bigint beyond 2^53 is rounded. Errors: a signal that never existed (42704), one that is no
waveform (42804), waveforms that may be in an archive that PostgreSQL cannot read (RL003), every_nth below 1 (22023).$$;
grant execute on function ringlog.get_waveforms to daq_reader, daq_table_reader;
