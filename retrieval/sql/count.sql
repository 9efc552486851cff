-- rows of a log, counted no further than a bound
select count(*) as n
from (
  select from {log} as logged
  where logged."time" >= {start} and logged."time" < {end}
  limit {bound}
) as bounded
