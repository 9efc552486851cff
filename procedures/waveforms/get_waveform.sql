create or replace function ringlog.get_waveform(name text, at timestamptz default null)
returns table ("time" timestamptz, value double precision[])
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select waveform."time", waveform.value
    from ringlog.waveforms_of(name, '-infinity', coalesce(at, 'infinity'), true, 1, 1) as waveform;
end
$$;
comment on function ringlog.get_waveform is
$$The waveform that was valid at a time, and its time: the newest one that is not later; default: now. No row when all
are later. The points are of type double precision; a bigint beyond 2^53 is rounded. Errors: a signal that never existed
(42704), one that is no waveform (42804), waveforms that may be in an archive that PostgreSQL cannot read (RL003).$$;
grant execute on function ringlog.get_waveform to daq_reader, daq_table_reader;
