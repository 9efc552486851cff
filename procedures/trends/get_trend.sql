create or replace function ringlog.get_trend(
  name text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  points integer default 1000
) returns table (
  "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint
)
language sql stable
as $$
  select trend."time", trend.n, trend.min, trend.max, trend.mean, trend.first, trend.last, trend.nans, trend.nulls
  from ringlog.trends_of(
    array[get_trend.name], get_trend.from_time, get_trend.to_time, get_trend.points
  ) as trend
$$;
comment on function ringlog.get_trend is
$$A signal from from_time (inclusive) to to_time (exclusive) in at most so many bins of one length, oldest first: the
bin's begin, the number, minimum, maximum and mean of its values, the first and the last of them, and the numbers of
rows with NaN and without a reading, which the other figures omit; bins without rows are omitted. Bins made from
summaries have the length of stored spans, so that there are more than half as many as requested, and are counted from
1970; others begin with from_time. Rows that are not summarised yet are included,
except those that came late for an archived week: the next round of summaries adds them. Where rows are in the archive the
trend begins and ends with a whole span of the shortest summaries. Defaults: the last day, 1000 points. A scalar of a
waveform is a signal here, named as the waveform followed by .min, .max, .mean, .rms or .length. Errors: a signal that
never existed (42704), a varchar signal or a waveform (42804), bounds in the wrong order or points outside 1 to 1000000
(22023).$$;
grant execute on function ringlog.get_trend to daq_reader, daq_table_reader;
