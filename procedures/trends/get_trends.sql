create or replace function ringlog.get_trends(
  names text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  points integer default 1000
) returns table (
  signal text, "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint
)
language sql stable
as $$
  select
    trend.signal, trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last,
    trend.nans, trend.nulls
  from ringlog.trends_of(
    array_remove(
      regexp_split_to_array(
        btrim(get_trends.names, E' \t\r\n'),
        case when get_trends.names like E'%\n%' then '[ \t\r]*\n[ \t\r\n]*' else '[ \t\r]*,[ \t\r]*' end
      ),
      ''
    ),
    get_trends.from_time,
    get_trends.to_time,
    get_trends.points
  ) as trend
$$;
comment on function ringlog.get_trends is
$$The trends of many signals, one after the other, those of one table together, as get_trend returns one. `names` is a
list with commas, or, for names that contain commas, one name a line. Errors: those of get_trend for any of them.$$;
grant execute on function ringlog.get_trends to daq_reader, daq_table_reader;
