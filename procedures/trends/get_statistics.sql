create or replace function ringlog.get_statistics(
  name text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now()
) returns table (
  n bigint, min double precision, max double precision, mean double precision, std double precision,
  rms double precision, first double precision, last double precision, nans bigint, nulls bigint
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if from_time < to_time is not true or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'get_statistics: from_time (%) must be before to_time (%)', from_time, to_time
      using errcode = 'invalid_parameter_value';
  end if;
  return query
    select whole.n, whole.min, whole.max, whole.mean, whole.std, whole.rms, whole.first, whole.last, whole.nans, whole.nulls
    from ringlog.statistics_within(
      get_statistics.name, from_time, to_time, tstzmultirange(tstzrange(from_time, to_time))
    ) as whole
    where whole.n + whole.nans + whole.nulls > 0;
end
$$;
comment on function ringlog.get_statistics is
$$Statistics of a signal's values from from_time (inclusive) to to_time (exclusive), in one row: number, minimum,
maximum, mean, standard deviation (of the population), root mean square, first and last, and the numbers of rows with
NaN and without a reading, which the other figures omit. It reads summaries, and rows that are not summarised yet. No
row when there are no rows. Default: the last day. Errors: those of get_trend.$$;
grant execute on function ringlog.get_statistics to daq_reader, daq_table_reader;
