create or replace function ringlog.get_statistics(
  name text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now()
)
returns table (
  n bigint,
  min double precision,
  max double precision,
  mean double precision,
  std double precision,
  rms double precision,
  first double precision,
  last double precision,
  nans bigint,
  nulls bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if from_time < to_time is not true or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'get_statistics: from_time (%) must be before to_time (%)', from_time, to_time
      using errcode = 'invalid_parameter_value';
  end if;
  return query
    select
      bin.n,
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
      bin.nans,
      bin.nulls
    from ringlog.signal_bins(
      array[get_statistics.name], from_time, to_time, to_time - from_time, from_time, with_squares => true
    ) as bin;
end
$$;

comment on function ringlog.get_statistics is
$$Statistics of a signal's values from from_time (inclusive) to to_time (exclusive), in one row: number, minimum,
maximum, mean, standard deviation (of the population), root mean square, first and last, and the numbers of rows with
NaN and without a reading, which the other figures omit. It reads summaries, and rows that are not summarised yet. No
row when there are no rows. Default: the last day. Errors: those of get_trend.$$;

grant execute on function ringlog.get_statistics to daq_reader, daq_table_reader;
