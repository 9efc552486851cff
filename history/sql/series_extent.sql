select
  begun.n,
  begun."first",
  begun.later,
  (select max(log."time") from {log} as log where log."time" >= {start} and log."time" < {end}) as "last"
from (
  select count(*) as n, min(shown."time") as "first", max(shown."time") as later
  from (
    select log."time" from {log} as log
    where log."time" >= {start} and log."time" < {end}
    order by log."time"
    limit {some}
  ) as shown
) as begun
