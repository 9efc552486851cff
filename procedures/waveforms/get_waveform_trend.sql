create or replace function ringlog.get_waveform_trend(
  name text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  points integer default 1000
) returns table (
  "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  rms double precision, shortest integer, longest integer, nulls bigint
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  scalars constant text[] := array[
    name || '.min', name || '.max', name || '.mean', name || '.rms', name || '.length'
  ];
  kind text;
  other text;
begin
  select location.type into kind
  from ringlog.signal_places(array[name]) as location
  order by location.begins desc limit 1;
  if not found then
    perform ringlog.demand_here(array[name]);
    raise exception 'there is no signal ''%''', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  if kind not like '%[]' or kind like 'varchar%' then
    raise exception 'signal ''%'' is no waveform of numbers (%)', name, kind
      using errcode = 'datatype_mismatch', hint = 'get_trend gives the trend of single numbers.';
  end if;
  select known.signal into other from ringlog.signal as known where known.signal = any(scalars);
  if found then
    raise exception 'signal ''%'' has the name of a scalar of waveform ''%''', other, name
      using errcode = 'ambiguous_column', hint = 'get_trend gives the trends of the other scalars.';
  end if;
  return query
    with part as (
      select
        trend.*,
        substring(trend.signal from '[a-z]+$') as scalar,
        trend.mean * sqrt(1 + case
          when trend.mean < 'infinity' and trend.squares > 1e-300
            then (sqrt(trend.squares / trend.n) / trend.mean) ^ 2
          else 0
        end) as root
      from ringlog.trends_of(scalars, from_time, to_time, points, with_squares => true) as trend
    ), with_top as (
      -- squares of 1e200 and of 1e-200 are errors
      select part.*, max(part.root) filter (where part.scalar = 'rms') over (partition by part."time") as top
      from part
    ), bin as (
      select
        part."time",
        sum(part.n) filter (where part.scalar = 'length') as n,
        min(part.min) filter (where part.scalar = 'min') as low,
        max(part.max) filter (where part.scalar = 'max') as high,
        sum(part.n * part.mean) filter (where part.scalar = 'mean')
          / nullif(sum(part.n) filter (where part.scalar = 'mean'), 0) as middle,
        max(part.top) * coalesce(
          sqrt(
            sum(part.n * (part.root / part.top) ^ 2)
              filter (where part.scalar = 'rms' and part.root > 0 and part.top < 'infinity')
            / sum(part.n) filter (where part.scalar = 'rms')
          ),
          1
        ) as root,
        min(part.min) filter (where part.scalar = 'length') as least,
        max(part.max) filter (where part.scalar = 'length') as most,
        sum(part.nulls) filter (where part.scalar = 'length') as missing
      from with_top as part group by part."time"
    )
    select
      bin."time", bin.n::bigint, bin.low, bin.high, bin.middle, bin.root, bin.least::integer, bin.most::integer,
      bin.missing::bigint
    from bin order by bin."time";
end
$$;
comment on function ringlog.get_waveform_trend is
$$A waveform from from_time (inclusive) to to_time (exclusive) in at most so many bins of one length, oldest first: the
number of waveforms, the minimum and maximum of their points, the mean of the waveforms' means and the root mean square
of their rms, in which each waveform has the same weight whatever its length, the smallest and largest number of points,
and the number of rows without a waveform. Points that are NaN are omitted; a waveform of NaN only is omitted from mean
and rms; bins without rows are omitted. Bins are made of summaries and rows as those of get_trend. Defaults: the last
day, 1000 bins. Errors: a signal that never existed (42704), one that is no waveform of numbers (42804), a waveform one
of whose scalars has the name of another signal (42702), bounds in the wrong order or points outside 1 to 1000000
(22023).$$;
grant execute on function ringlog.get_waveform_trend to daq_reader, daq_table_reader;
