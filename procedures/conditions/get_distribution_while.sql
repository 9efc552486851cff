create or replace function ringlog.get_distribution_while(
  name text,
  while text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now(),
  percents text default '5,50,95',
  gap double precision default null
)
returns table (percent double precision, value double precision, time_mean double precision)
language sql
stable
as $$
  with spans (within) as materialized (
    select ringlog.condition_spans(
      get_distribution_while.while, get_distribution_while.from_time, get_distribution_while.to_time, get_distribution_while.gap
    )
  ), wanted (percents) as (
    select string_to_array(get_distribution_while.percents, ',')::double precision[]
  ), whole (quantiles) as (
    select percentile_cont((select array_agg(each / 100) from wanted, unnest(wanted.percents) as each))
      within group (order by logged.value)
    from spans, ringlog.get_signal(
      get_distribution_while.name, get_distribution_while.from_time, get_distribution_while.to_time
    ) as logged
    where logged.value <> 'NaN' and spans.within @> logged."time"
  )
  select quantile.percent, quantile.value, figures.time_mean
  from spans
  cross join wanted
  cross join whole
  cross join lateral unnest(wanted.percents, whole.quantiles) as quantile (percent, value)
  cross join lateral ringlog.statistics_within(
    get_distribution_while.name, get_distribution_while.from_time, get_distribution_while.to_time, spans.within,
    get_distribution_while.gap, true
  ) as figures
  where whole.quantiles is not null
$$;

comment on function ringlog.get_distribution_while is
$$The percentiles of a signal's values, as get_distribution returns them, of the times in which a condition of signals holds
(get_spans), and the mean weighted by duration of get_statistics_while. It reads the rows. Errors: those of get_signal and
get_spans, percents outside 0 to 100 (22003).$$;

grant execute on function ringlog.get_distribution_while to daq_reader, daq_table_reader;
