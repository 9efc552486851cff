select count(*) as n
from (
  select from {log} as log where log."time" >= {start} and log."time" < {end} limit {most}
) as bounded
