select known.signal, known.table_name
from (
  select signal, table_name, valid_to from ringlog.signal
  union all
  select signal, table_name, valid_to from ringlog.signal_elsewhere where node <> %(node)s
) as known
where known.signal = any(%(names)s) and coalesce(known.valid_to, 'infinity') = 'infinity'
limit 1
