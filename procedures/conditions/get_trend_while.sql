create or replace function ringlog.get_trend_while(
  name text, while text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  points integer default 1000, gap double precision default null
) returns table (
  "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint
)
language sql stable
as $$
  select trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last, trend.nans, trend.nulls
  from ringlog.bins_of_trends(
    array[get_trend_while.name], get_trend_while.from_time, get_trend_while.to_time, get_trend_while.points
  ) as bins
  cross join lateral ringlog.condition_spans(get_trend_while.while, bins.begins, bins.ends, get_trend_while.gap) as spans (within)
  cross join lateral ringlog.bins_within(
    bins.signals, bins.begins, bins.ends, bins.width, bins.origin, false, spans.within
  ) as trend
$$;
comment on function ringlog.get_trend_while is
$$The trend of a signal, as get_trend returns it, of its values in the times in which a condition of signals holds (get_spans).
Errors: those of get_trend and get_spans.$$;
grant execute on function ringlog.get_trend_while to daq_reader, daq_table_reader;
