select week.*, known.until
from (values (true)) as always
left join (select until from ringlog.closed where table_name = {table}) as known on {is_closed}
left join (
  select begins, ends, archive as folder, file, rows, footer
  from ringlog.cold_week, ringlog.history
  where table_name = {table} and recalled_until is null and rows > 0 and begins < {end}
) as week on true
order by begins
