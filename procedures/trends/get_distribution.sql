create or replace function ringlog.get_distribution(
  name text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now(),
  percents text default '5,50,95'
) returns table (percent double precision, value double precision, weighted_mean double precision)
language sql stable
as $$
  select whole.percent, whole.value, whole.time_mean
  from ringlog.get_distribution_while(
    get_distribution.name, null, get_distribution.from_time, get_distribution.to_time, get_distribution.percents
  ) as whole
$$;
comment on function ringlog.get_distribution is
$$The distribution of a signal's values from from_time (inclusive) to to_time (exclusive), or now: for each of these percents
the percentile, interpolated between two values; and, in each row, the mean weighted by duration: a value is held until
the next row, from the newest row before from_time on; NaN and no reading end it and hold nothing. It reads the rows. Defaults:
the last day; 5, 50 and 95 %. Errors: those of get_signal, percents outside 0 to 100 (22023).$$;
grant execute on function ringlog.get_distribution to daq_reader, daq_table_reader;
