-- as it was called before
drop function if exists ringlog.signal_bins(text, timestamptz, timestamptz, interval, timestamptz);

create or replace function ringlog.signal_bins(
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

comment on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) is
$$The values of signals in the log from from_time (inclusive) to to_time (exclusive), in bins of this width counted from
origin: number, minimum, maximum, mean, first and last, and the numbers of rows with NaN and without a reading, which
the other figures omit. Bins without rows are omitted; a bin in which a signal moved to another column is returned
twice, each with its own rows. A scalar of a waveform is a signal here (trend_places). Bins of whole seconds counted
from 1970 are made of summaries where possible, and so is a single bin for all. `squares` is the sum of the squared
distances from the mean, null unless requested.$$;

revoke all on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) from public;
grant execute on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) to daq_reader;
