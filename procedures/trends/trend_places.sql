create or replace function ringlog.trend_places(names text[]) returns table (
  signal text, table_name text, column_name text, scalar text, type text, begins timestamptz, ends timestamptz
)
language sql stable
as $$
  select location.signal, location.table_name, location.column_name, null, location.type, location.begins, location.ends
  from ringlog.signal_places(trend_places.names) as location
  union all
  select asked.name, location.table_name, location.column_name, asked.scalar, location.type, location.begins, location.ends
  from (
    select known.name, substring(known.name from '\.(min|max|mean|rms|length)$') as scalar
    from unnest(trend_places.names) as known (name)
    where not exists (select from ringlog.signal where signal.signal = known.name)
  ) as asked
  cross join lateral ringlog.signal_places(array[left(asked.name, -1 - length(asked.scalar))]) as location
  where location.type like '%[]' and location.type not like 'varchar%'
$$;
comment on function ringlog.trend_places is
$$As signal_places, and other columns that have a trend: the scalars of waveforms, each named as its signal followed by
.min, .max, .mean, .rms or .length, unless a signal has that name. `scalar` is the scalar; null for a signal.$$;
grant execute on function ringlog.trend_places to daq_reader, daq_table_reader;
