create or replace function {procedure}(at timestamptz default 'infinity', _number integer default null) returns table (
  signal text, "time" timestamptz, nanoseconds smallint, value {type}, severity smallint, status smallint
)
language sql stable
as $$
  select
    known.signal, ringlog.moment(newest."time"), (newest."time" % 1000)::smallint, newest.value,
    coalesce(newest.severity, 0::smallint), coalesce(newest.status, 0::smallint)
  from ringlog.sample_signal as known
  left join ringlog.last_archived as archived on archived.number = known.number
  cross join lateral (
    select sample.*
    from (
      select each.*
      from (
        (
          select block.times, block.{of_block}, block.severities, block.statuses
          from {log} as block
          where block.signal = known.number and block."time" < {this}.at
          order by block."time" desc
          limit 1
        )
        union all
        (
          select block.times, block.{of_block}, block.severities, block.statuses
          from {log} as block
          where block.signal = known.number and block."time" >= {this}.at
            and block."time" < {this}.at + interval '1 hour' and block.begins <= {this}.at
        )
      ) as block
      cross join lateral {samples_of_block} as each ("time", value, severity, status)
      where ringlog.moment(each."time") <= {this}.at
      union all
      select archived."time", archived.value::{type}, archived.severity, archived.status
      where ringlog.moment(archived."time") <= {this}.at
      union all
      select earlier."time", earlier.value::{type}, earlier.severity, earlier.status
      from ringlog.newest_archived({table}, known.number, {this}.at) as earlier
      where ringlog.moment(archived."time") > {this}.at
    ) as sample
    order by sample."time" desc
    limit 1
  ) as newest
  where known.table_name = {table} and ({this}._number is null or known.number = {this}._number)
  order by 1
$$;
comment on function {procedure} is
$$The newest sample of each signal of the table that is not later than a time, also of
archived weeks; signals without one have no row.$$;
grant execute on function {procedure} to daq_reader;
