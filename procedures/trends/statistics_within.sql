create or replace function ringlog.statistics_within(
  name text, from_time timestamptz, to_time timestamptz, within tstzmultirange, gap double precision default null,
  weighted boolean default false
) returns table (
  n bigint, min double precision, max double precision, mean double precision, std double precision,
  rms double precision, first double precision, last double precision, nans bigint, nulls bigint,
  seconds double precision, time_mean double precision
)
language sql stable
as $$
  select
    coalesce(bin.n, 0),
    bin.min,
    bin.max,
    bin.mean,
    sqrt(bin.squares / nullif(bin.n, 0)),
    case
      -- the mean may be NaN then
      when bin.max = 'infinity' or bin.min = '-infinity' then 'infinity'
      else sqrt((bin.squares + bin.n * bin.mean ^ 2) / nullif(bin.n, 0))
    end,
    bin.first,
    bin.last,
    coalesce(bin.nans, 0),
    coalesce(bin.nulls, 0),
    whole.seconds,
    held.mean
  from (
    select sum(extract(epoch from upper(span) - lower(span)))::double precision
    from unnest(statistics_within.within) as span
  ) as whole (seconds)
  left join ringlog.bins_within(
    array[statistics_within.name], statistics_within.from_time, statistics_within.to_time,
    statistics_within.to_time - statistics_within.from_time, statistics_within.from_time, true, statistics_within.within
  ) as bin on true
  left join lateral ringlog.held_mean(
    statistics_within.name, statistics_within.from_time, statistics_within.to_time, statistics_within.within, statistics_within.gap
  ) as held (mean) on statistics_within.weighted
$$;
comment on function ringlog.statistics_within is
$$One row: the figures of get_statistics for the values of those times that are `within`, the duration of these times in seconds,
and, if `weighted`, the mean weighted by duration (held_mean).$$;
grant execute on function ringlog.statistics_within to daq_reader, daq_table_reader;
