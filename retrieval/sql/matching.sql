-- the signals of all servers, of today and of the past, whose whole name fits a regular expression
select signal
from (
  select known.signal from ringlog.signal as known where known.signal {operator} {pattern}
  union
  select known.signal from ringlog.signal_elsewhere as known where known.signal {operator} {pattern}
) as found
order by signal
limit {limit}
