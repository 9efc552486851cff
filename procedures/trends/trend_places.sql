create or replace function ringlog.trend_places(names text[])
returns table (
  signal text,
  table_name text,
  column_name text,
  scalar text,
  type text,
  begins timestamptz,
  ends timestamptz
)
language sql
stable
as $$
  select place.signal, place.table_name, place.column_name, null, place.type, place.begins, place.ends
  from ringlog.signal_places(trend_places.names) as place
  union all
  select asked.name, place.table_name, place.column_name, asked.scalar, place.type, place.begins, place.ends
  from (
    select known.name, substring(known.name from '\.(min|max|mean|rms|length)$') as scalar
    from unnest(trend_places.names) as known (name)
    where not exists (select from ringlog.signal where signal.signal = known.name)
  ) as asked
  cross join lateral ringlog.signal_places(array[left(asked.name, -1 - length(asked.scalar))]) as place
  where place.type like '%[]' and place.type not like 'varchar%'
$$;

comment on function ringlog.trend_places is
$$As signal_places, and other columns that have a trend: the scalars of waveforms, each named as its signal followed by
.min, .max, .mean, .rms or .length, unless a signal has that name. `scalar` is the scalar; null for a signal.$$;

grant execute on function ringlog.trend_places to daq_reader, daq_table_reader;
