create or replace function ringlog.signal_bins(
  names text[], from_time timestamptz, to_time timestamptz, width interval, origin timestamptz,
  with_squares boolean default false
) returns table (
  signal text, "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint, squares double precision
)
language sql stable
as $$
  select *
  from ringlog.bins_within(
    signal_bins.names, signal_bins.from_time, signal_bins.to_time, signal_bins.width, signal_bins.origin,
    signal_bins.with_squares, '{(,)}'
  )
$$;
comment on function ringlog.signal_bins is $$As bins_within, of all times; `squares` is null unless requested.$$;
grant execute on function ringlog.signal_bins to daq_reader, daq_table_reader;
