create or replace function ringlog.get_distribution_while(
  name text,
  while text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now(),
  percents text default '5,50,95',
  gap double precision default null
) returns table (percent double precision, value double precision, time_mean double precision)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  wanted constant double precision[] := string_to_array(percents, ',')::double precision[];
  within constant tstzmultirange := ringlog.condition_spans(while, from_time, to_time, gap);
begin
  if (0 <= all (wanted) and 100 >= all (wanted) and cardinality(wanted) > 0) is not true then
    raise exception 'percents ''%'' must be numbers from 0 to 100 with commas between them', percents
      using errcode = 'invalid_parameter_value';
  end if;
  return query
    select quantile.percent, quantile.value, held.mean
    from (
      select percentile_cont(array(select each / 100 from unnest(wanted) as each)) within group (order by logged.value)
      from ringlog.get_signal(name, from_time, to_time) as logged
      where logged.value <> 'NaN' and within @> logged."time"
    ) as whole (quantiles)
    cross join ringlog.held_mean(name, from_time, to_time, within, gap) as held (mean)
    cross join unnest(wanted, whole.quantiles) as quantile (percent, value)
    where whole.quantiles is not null;
end
$$;
comment on function ringlog.get_distribution_while is
$$The percentiles of a signal's values, as get_distribution returns them, of the times in which a condition of signals holds
(get_spans; null: always), and the mean weighted by duration of get_statistics_while. It reads the rows. Errors: those of
get_signal and get_spans, percents outside 0 to 100 (22023).$$;
grant execute on function ringlog.get_distribution_while to daq_reader, daq_table_reader;
