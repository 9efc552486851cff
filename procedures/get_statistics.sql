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
    with part as (
      -- one for each column that the signal was in
      select bin.*, row_number() over (order by bin."time") as number
      from ringlog.signal_bins(
        array[get_statistics.name], from_time, to_time, to_time - from_time, from_time, with_squares => true
      ) as bin
    ), whole as (
      select sum(part.n * part.mean) / nullif(sum(part.n), 0) as mean from part
    )
    select
      sum(part.n)::bigint,
      min(part.min),
      max(part.max),
      whole.mean,
      sqrt(sum(part.squares + part.n * (part.mean - whole.mean) ^ 2) / nullif(sum(part.n), 0)),
      sqrt(sum(part.squares + part.n * part.mean ^ 2) / nullif(sum(part.n), 0)),
      (array_agg(part.first order by part.number) filter (where part.n > 0))[1],
      (array_agg(part.last order by part.number desc) filter (where part.n > 0))[1],
      sum(part.nans)::bigint,
      sum(part.nulls)::bigint
    from part cross join whole
    group by whole.mean
    having count(*) > 0;
end
$$;

comment on function ringlog.get_statistics(text, timestamptz, timestamptz) is
$$What the values of a signal from from_time on and before to_time come to, in one row: their number, the least, the
greatest, mean, standard deviation (of all of them, not of a sample), root of the mean square, first and last, and how
many rows had NaN or no reading, which do not count for the others. It is made of summaries and of the rows that are
not in them yet. No row when there is none. Left out: the last day. Errors: those of get_trend.$$;

revoke all on function ringlog.get_statistics(text, timestamptz, timestamptz) from public;
grant execute on function ringlog.get_statistics(text, timestamptz, timestamptz) to daq_reader;
