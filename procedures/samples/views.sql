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
    select block.*, sum(block.n) over (order by block."time" desc rows unbounded preceding) - block.n as later
    from (
      select * from {log} as each where each.signal = known.number order by each."time" desc limit {ring}
    ) as block
  ) as latest
  cross join lateral unnest(latest.times, latest.samples, latest.severities, latest.statuses)
    as newest ("time", value, severity, status)
  where latest.later < {ring}
  order by newest."time" desc
  limit {ring}
) as each
where known.table_name = {table};
