create or replace function ringlog.get_waveform(name text, at timestamptz default null)
returns table ("time" timestamptz, value double precision[])
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select waveform."time", waveform.value
    from ringlog.waveforms_of(name, '-infinity', coalesce(at, 'infinity'), true, 1, 1) as waveform;
end
$$;

comment on function ringlog.get_waveform(text, timestamptz) is
$$The waveform in force at a time, and when it was taken: the newest that is not newer; `at` left out is now. No
row when there is none that old. The points are of type double precision; a bigint beyond 2^53 is rounded.
Errors: a signal that never was (42704), one that is no waveform (42804), waveforms that may be in the archive
(RL003).$$;

revoke all on function ringlog.get_waveform(text, timestamptz) from public;
grant execute on function ringlog.get_waveform(text, timestamptz) to daq_reader;
