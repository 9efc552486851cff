create or replace function ringlog.get_spans(
  while text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now(),
  gap double precision default null
) returns table (begins timestamptz, ends timestamptz)
language sql stable
as $$
  select lower(span), upper(span)
  from unnest(ringlog.condition_spans(get_spans.while, get_spans.from_time, get_spans.to_time, get_spans.gap)) as span
$$;
comment on function ringlog.get_spans is
$$The spans, from `begins` (inclusive) to `ends` (exclusive), oldest first, in which a condition of signals holds, as
SR:CURRENT > 10 and SR:MODE = 'user' (condition_spans). A value lasts until the signal's next row, for at most `gap` seconds.
Default: the last day. Errors: those of condition_spans.$$;
grant execute on function ringlog.get_spans to daq_reader, daq_table_reader;
