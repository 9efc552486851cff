create or replace function ringlog.trend_in_bins(
  names text[],
  have_moved boolean,
  from_time timestamptz,
  to_time timestamptz,
  width interval,
  origin timestamptz,
  with_squares boolean default false
)
returns table (
  signal text,
  "time" timestamptz,
  n bigint,
  min double precision,
  max double precision,
  mean double precision,
  first double precision,
  last double precision,
  nans bigint,
  nulls bigint,
  squares double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
declare
  part record;
begin
  if have_moved then
    return query select * from ringlog.signal_bins(names, from_time, to_time, width, origin, with_squares);
    return;
  end if;
  -- without gathering the rows once more
  for part in
    select * from ringlog.queries_of_bins(names, from_time, to_time, width, origin, with_squares)
  loop
    return query execute part.query using part.signals, part.columns;
  end loop;
end
$$;

comment on function ringlog.trend_in_bins is
$$Returns the same as signal_bins, in the bins of bins_of_trends, which also determines whether some of the signals
`have_moved`; without such signals the query is shorter.$$;

grant execute on function ringlog.trend_in_bins to daq_reader, daq_table_reader;
