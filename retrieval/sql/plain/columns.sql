-- the columns of a table of any server, and their signals
select column_name, type, signal
from (
  select table_name, column_name, type, signal, valid_to from ringlog.signal
  union all
  select table_name, column_name, type, signal, valid_to from ringlog.signal_elsewhere
) as known
where table_name = {table} and valid_to is null
order by column_name
