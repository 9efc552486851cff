create or replace function ringlog.trends_of(
  names text[], from_time timestamptz, to_time timestamptz, points integer, with_squares boolean default false
) returns table (
  signal text, "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint, squares double precision, width interval
)
language sql stable
as $$
  select trend.*, bins.width
  from ringlog.bins_of_trends(trends_of.names, trends_of.from_time, trends_of.to_time, trends_of.points) as bins
  cross join lateral ringlog.signal_bins(
    bins.signals, bins.begins, bins.ends, bins.width, bins.origin, trends_of.with_squares
  ) as trend
$$;
comment on function ringlog.trends_of is
$$The common part of get_trend, get_trends, get_waveform_trend and of trends over HTTP, with the width of the bins;
`squares` as in signal_bins.$$;
grant execute on function ringlog.trends_of to daq_reader, daq_table_reader;
