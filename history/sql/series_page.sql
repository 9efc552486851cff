select {packed}
from (
  select {columns}
  from {log}
  where "time" >= {start} and "time" < {end}
  order by "time", seq_no
  -- where the planner knows the limit, it sorts rows that the index has in order
  limit (select {most})
) as logged
