insert into {{partition}} (signal, n, "time", begins, times, {column}, severities, statuses)
select
  sent.number, count(*), ringlog.moment(max(sent."time")), ringlog.moment(min(sent."time")),
  array_agg(sent."time" order by sent."time"), {value},
  case when bool_or(severity <> 0) then array_agg(severity order by sent."time") end,
  case when bool_or(status <> 0) then array_agg(status order by sent."time") end
from (
  select *,
    (row_number() over (partition by number, "time" / 3600000000000 order by "time") - 1) / 4096 as block
  from ({{samples}}) as sample
) as sent
group by sent.number, {hour}, sent.block
