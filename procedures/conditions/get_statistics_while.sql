create or replace function ringlog.get_statistics_while(
  name text, while text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  gap double precision default null, weighted boolean default false
) returns table (
  n bigint, min double precision, max double precision, mean double precision, std double precision,
  rms double precision, first double precision, last double precision, nans bigint, nulls bigint,
  seconds double precision, time_mean double precision
)
language sql stable
as $$
  select figures.*
  from ringlog.condition_spans(
    get_statistics_while.while, get_statistics_while.from_time, get_statistics_while.to_time, get_statistics_while.gap
  ) as spans (within)
  cross join lateral ringlog.statistics_within(
    get_statistics_while.name, get_statistics_while.from_time, get_statistics_while.to_time, spans.within,
    get_statistics_while.gap, get_statistics_while.weighted
  ) as figures
$$;
comment on function ringlog.get_statistics_while is
$$One row: the figures of get_statistics for a signal's values of the times in which a condition of signals holds (get_spans), and
the duration of these times in seconds (null: it never holds). With `weighted` also the mean weighted by duration: a number is held
until the next row, for at most `gap` seconds, also into a time in which the condition holds; NaN and no reading end it. This mean
reads the rows, the other figures read summaries where they can. Default: the last day. Errors: those of get_trend and get_spans.$$;
grant execute on function ringlog.get_statistics_while to daq_reader, daq_table_reader;
