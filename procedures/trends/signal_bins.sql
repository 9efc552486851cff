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
language sql
stable
as $$
  select
    part.signal,
    part."time",
    sum(part.n)::bigint,
    min(part.min),
    max(part.max),
    case when count(*) = 1 then min(part.mean) else sum(part.n * part.mean) / nullif(sum(part.n), 0) end,
    (array_agg(part.first order by part.number) filter (where part.n > 0))[1],
    (array_agg(part.last order by part.number desc) filter (where part.n > 0))[1],
    sum(part.nans)::bigint,
    sum(part.nulls)::bigint,
    case
      when count(*) = 1 then min(part.squares)
      -- PostgreSQL raises an error for a square that underflows
      when signal_bins.with_squares then sum(
        part.squares
        + case when abs(part.mean - part.bin_mean) > 1e-150 then part.n * (part.mean - part.bin_mean) ^ 2 else 0 end
      )
    end
  from (
    select bin.*, sum(bin.n * bin.mean) over of_bin / nullif(sum(bin.n) over of_bin, 0) as bin_mean
    from ringlog.bins_of_places(
      signal_bins.names, signal_bins.from_time, signal_bins.to_time, signal_bins.width, signal_bins.origin,
      signal_bins.with_squares
    ) with ordinality as bin (
      signal, "time", n, min, max, mean, first, last, nans, nulls, squares, number
    )
    window of_bin as (partition by bin.signal, bin."time")
  ) as part
  group by part.signal, part."time"
  order by array_position(signal_bins.names, part.signal), part."time"
$$;

comment on function ringlog.signal_bins is
$$The values of signals in the log from from_time (inclusive) to to_time (exclusive), in bins of this width counted from
origin: number, minimum, maximum, mean, first and last, and the numbers of rows with NaN and without a reading, which
the other figures omit. Bins without rows are omitted. A scalar of a waveform is a signal here (trend_places). Bins of
whole seconds counted from 1970 are made of summaries where possible, and so is a single bin for all. `squares` is the
sum of the squared distances from the mean, null unless requested.$$;

grant execute on function ringlog.signal_bins to daq_reader, daq_table_reader;
