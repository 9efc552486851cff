select least(
  (select min("time") from {log} where "time" >= %(start)s and "time" < %(end)s),
  (
    select min(greatest(begins, %(start)s)) from ringlog.cold_week
    where table_name = %(table)s and recalled_until is null and rows > 0
      and ends > %(start)s and begins < %(end)s
  )
)
