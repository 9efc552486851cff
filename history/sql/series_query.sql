select stretch.number, block.times, block.samples
from generate_series(0, {last}) as stretch (number)
cross join lateral (
  select {pack}(array_agg(logged."time")) as times, {pack}(array_agg(logged.value)) as samples
  from (
    select log."time", log.{column} as value
    from {log} as log
    where log."time" >= {start} and log."time" < {end}
      and log."time" >= {start} + stretch.number * interval {width}
      and log."time" < {start} + (stretch.number + 1) * interval {width}
    order by log."time", log.seq_no
    limit {most}
  ) as logged
) as block
where block.times is not null
