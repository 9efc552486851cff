select came.*
from generate_series(0, {last}) as span (number)
cross join lateral (
  select {columns}
  from {log} as log
  where log."time" >= {start} and log."time" < {end}
    and log."time" >= {start} + span.number * interval {width}
    and log."time" < {start} + (span.number + 1) * interval {width}
  order by log."time" {order}, log.seq_no {order}
  limit 1
) as came
order by came."time"
