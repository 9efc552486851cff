-- the signals, of today and of the past, whose whole name fits a regular expression
select distinct signal.signal
from ringlog.signal
where signal.signal {operator} {pattern}
order by signal.signal
limit {limit}
