select {packed}
from (
  select {columns}
  from {log}
  where "time" >= {start} and "time" < {end}
  order by "time", seq_no
  -- a limit that the planner does not know keeps it from sorting what the index has in order
  limit (select {most})
) as logged
