-- the signals of all servers, of today and of the past, that the login may read and whose whole name fits a regular expression
select distinct signal
from (
  select known.signal, table_name from ringlog.signal as known where known.signal {operator} {pattern}
  union all
  select known.signal, table_name from ringlog.signal_elsewhere as known where known.signal {operator} {pattern}
) as found
where pg_has_role('daq_reader', 'usage') or table_name in (select ringlog.readable_tables())
order by signal
limit {limit}
