with bound as materialized (
  select coalesce((
    select date_trunc('hour', block."time", 'UTC') + interval '1 hour'
    from {log} as block
    where block.signal = $1 and block."time" >= $2::timestamptz
      and block."time" < $3::timestamptz + interval '1 hour' and block.begins < $3::timestamptz
    order by block."time"
    limit 1 offset {more}
  ), 'infinity') as until
)
select
  (extract(epoch from nullif(bound.until, 'infinity')) * 1000000)::bigint, {pack}(block.times),
  {pack}(block.samples), {pack}(block.severities), {pack}(block.statuses),
  exists (
    select from ringlog.cold_week as cold
    where cold.table_name = {table} and cold.recalled_until is null and cold.rows > 0
      and cold.begins < $3::timestamptz and cold.ends > $2::timestamptz
  )
from bound
left join lateral (
  select * from {log} as each
  where each.signal = $1 and each."time" >= $2::timestamptz
    and each."time" < least($3::timestamptz + interval '1 hour', bound.until)
    and each.begins < $3::timestamptz
) as block on true
order by block."time"
