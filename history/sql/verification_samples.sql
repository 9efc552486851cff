with span as (
  select
    block.column_name as signal, begins + (number - 1) * {length} as begin,
    span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and block.column_name not like '%.severity'
    and span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) > 0
), logged as (
  select signal::text, date_bin({length}, "time", 'epoch') as begin, sum(n) as rows
  from {log} where "time" >= '1970-01-05 00:00+00' and "time" < {until} group by 1, 2
)
