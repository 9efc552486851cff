create or replace function {procedure}(
  signal text,
  from_time timestamptz default null,
  to_time timestamptz default null,
  max_rows integer default null,
  _number integer default null
)
returns table ("time" timestamptz, nanoseconds smallint, value {type}, severity smallint, status smallint)
language sql
stable
as $$
  select
    ringlog.moment(each."time"), (each."time" % 1000)::smallint, each.value, coalesce(each.severity, 0::smallint),
    coalesce(each.status, 0::smallint)
  from {log} as block
  cross join lateral unnest(block.times, block.samples, block.severities, block.statuses)
    as each ("time", value, severity, status)
  where block.signal = coalesce({this}._number, ringlog.number_of_signal({table}, {this}.signal))
    and block."time" >= coalesce({this}.from_time, '-infinity')
    -- no block is of two hours
    and block."time" < coalesce({this}.to_time, 'infinity') + interval '1 hour'
    and block.begins < coalesce({this}.to_time, 'infinity')
    and each."time" >= ringlog.nanoseconds(coalesce({this}.from_time, '-infinity'))
    and each."time" < ringlog.nanoseconds(coalesce({this}.to_time, 'infinity'))
  order by each."time"
  limit {this}.max_rows
$$;

comment on function {procedure}(text, timestamptz, timestamptz, integer, integer) is
$$The samples of a signal of the table from from_time (inclusive) to to_time (exclusive), oldest first, at most max_rows of
them; a bound that is omitted or null does not limit. nanoseconds are those below a microsecond; a null value is no
reading; severity and status are EPICS's. Error: no such signal in this table (42704).$$;

revoke all on function {procedure}(text, timestamptz, timestamptz, integer, integer) from public;
grant execute on function {procedure}(text, timestamptz, timestamptz, integer, integer) to daq_reader;
