create or replace function ringlog.bins_of_places(
  names text[],
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
as $$
declare
  part record;
begin
  for part in
    select * from ringlog.queries_of_bins(names, from_time, to_time, width, origin, with_squares)
  loop
    return query execute part.query using part.signals, part.columns;
  end loop;
end
$$;

comment on function ringlog.bins_of_places is
$$As signal_bins, but a bin in which a signal moved to another column is returned twice, each with its own rows.$$;

grant execute on function ringlog.bins_of_places to daq_reader, daq_table_reader;
