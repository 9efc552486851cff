create or replace function ringlog.get_waveform_points(
  name text, at timestamptz default null, first_point integer default 0, max_points integer default null
) returns table (point integer, value double precision)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select numbered.ordinality::integer - 1, numbered.value
  from ringlog.get_waveform(name, at) as waveform,
    unnest(waveform.value) with ordinality as numbered (value, ordinality)
  where numbered.ordinality > first_point
  order by numbered.ordinality
  limit max_points
$$;
comment on function ringlog.get_waveform_points is
$$The points of the waveform that was valid at a time, as rows: number of the point, from 0, and value; from first_point
on, at most max_points. For consoles, which show packed binary as such. Errors: those of get_waveform.$$;
grant execute on function ringlog.get_waveform_points to daq_reader, daq_table_reader;
