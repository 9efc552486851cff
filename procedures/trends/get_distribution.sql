create or replace function ringlog.get_distribution(
  name text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now(),
  percents text default '5,50,95'
)
returns table (percent double precision, value double precision, weighted_mean double precision)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  wanted double precision[] := string_to_array(percents, ',')::double precision[];
begin
  if (0 <= all (wanted) and 100 >= all (wanted) and cardinality(wanted) > 0) is not true then
    raise exception 'get_distribution: percents ''%'' must be numbers from 0 to 100 with commas between them', percents
      using errcode = 'invalid_parameter_value';
  end if;
  return query
    with logged as (
      select
        each.value,
        extract(epoch from lead(each."time", 1, least(to_time, now())) over (order by each."time") - each."time")
          ::double precision as seconds
      from ringlog.get_signal(get_distribution.name, from_time, to_time) as each
      where each.value <> 'NaN'
    ), whole as (
      select
        percentile_cont(array(select part / 100 from unnest(wanted) as part)) within group (order by logged.value)
          as quantiles,
        sum(logged.value * logged.seconds) / nullif(sum(logged.seconds), 0) as mean
      from logged
    )
    select quantile.percent, quantile.value, whole.mean
    from whole
    cross join unnest(wanted, whole.quantiles) as quantile (percent, value)
    where whole.quantiles is not null;
end
$$;

comment on function ringlog.get_distribution is
$$The distribution of a signal's values from from_time (inclusive) to to_time (exclusive): for each of these percents
the percentile, interpolated between two values; and, in each row, the mean weighted by
duration: a value lasts until the next one, the last one until to_time, or now. It reads the rows. Defaults: the last
day; 5, 50 and 95 %. Errors: those of get_signal, percents outside 0 to 100 (22023).$$;

grant execute on function ringlog.get_distribution to daq_reader, daq_table_reader;
