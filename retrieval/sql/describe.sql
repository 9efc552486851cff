-- the newest place of each of these signals
select distinct on (signal.signal)
  signal.signal,
  signal.table_name,
  signal.column_name,
  signal.type,
  signal.unit,
  signal.description,
  signal.limit_low,
  signal.limit_high,
  signal.valid_to is null as now,
  logged_table.cycle,
  logged_table.log_nth,
  logged_table.log_period
from ringlog.signal
left join ringlog.logged_table on logged_table.table_name = signal.table_name
where signal.signal = any({names}::text[])
order by signal.signal, signal.valid_from desc
