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
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  part record;
  parts text;
  number integer := 0;
begin
  for part in
    select * from ringlog.bin_queries(names, from_time, to_time, width, origin, with_squares)
  loop
    if not part.have_moved then
      -- without gathering the bins once more
      return query execute part.query using part.signals, part.columns;
      continue;
    end if;
    number := number + 1;
    parts := concat_ws(' union all ', parts, format(
      'select %s as number, bin.* from (%s) as bin (%s)',
      number,
      -- no name of a column contains $
      replace(
        replace(part.query, '$2', format('%L::text[]', part.columns)), '($1)', format('(%L::text[])', part.signals)
      ),
      'signal, "time", n, min, max, mean, first, last, nans, nulls, squares'
    ));
  end loop;
  if parts is null then
    return;
  end if;
  return query execute format(
    'select part.signal, part."time", sum(part.n)::bigint, min(part.min), max(part.max), '
    '  case when count(*) = 1 then min(part.mean) else sum(part.n * part.mean) / nullif(sum(part.n), 0) end, '
    '  (array_agg(part.first order by part.number) filter (where part.n > 0))[1], '
    '  (array_agg(part.last order by part.number desc) filter (where part.n > 0))[1], '
    '  sum(part.nans)::bigint, sum(part.nulls)::bigint, '
    '  case '
    '    when count(*) = 1 then min(part.squares) '
    -- PostgreSQL raises an error for a square that underflows
    '    else sum(part.squares + case '
    '      when abs(part.mean - part.bin_mean) > 1e-150 then part.n * (part.mean - part.bin_mean) ^ 2 else 0 '
    '    end) '
    '  end '
    'from ('
    '  select *, sum(n * mean) over of_bin / nullif(sum(n) over of_bin, 0) as bin_mean '
    '  from (%s) as bin window of_bin as (partition by signal, "time")'
    ') as part group by part.signal, part."time" '
    'order by array_position($1, part.signal), part."time"',
    parts
  ) using names;
end
$$;

comment on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) is
$$The values of signals in the log from from_time (inclusive) to to_time (exclusive), in bins of this width counted from
origin: number, minimum, maximum, mean, first and last, and the numbers of rows with NaN and without a reading, which
the other figures omit. Bins without rows are omitted. A scalar of a waveform is a signal here (trend_places). Bins of
whole seconds counted from 1970 are made of summaries where possible, and so is a single bin for all. `squares` is the
sum of the squared distances from the mean, null unless requested.$$;

revoke all on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) from public;
grant execute on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) to daq_reader, daq_table_reader;
