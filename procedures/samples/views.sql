-- Run by the installer, not a procedure: the ring as people read it. For the log see ringlog.view_samples.
create or replace view {online} as
select
  known.signal, ringlog.moment(each."time") as "time", each.value,
  coalesce(each.severity, 0::smallint) as severity, coalesce(each.status, 0::smallint) as status,
  (each."time" % 1000)::smallint as nanoseconds, known.number
from ringlog.sample_signal as known
cross join lateral (
  select newest.*
  from (
    select latest.*, sum(latest.n) over (order by latest."time" desc rows unbounded preceding) - latest.n as later
    from (
      select * from {log} as each where each.signal = known.number order by each."time" desc limit {ring}
    ) as latest
  ) as block
  cross join lateral {samples_of_block} as newest ("time", value, severity, status)
  where block.later < {ring}
  order by newest."time" desc
  limit {ring}
) as each
where known.table_name = {table};
