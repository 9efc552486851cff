with span as (
  select
    begins + (number - 1) * {length} as begin,
    max(span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0)) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) > 0
  group by 1
), logged as (
  select date_bin({length}, "time", 'epoch') as begin, count(*) as rows
  from {log} where "time" >= '1970-01-05 00:00+00' and "time" < {until} group by 1
)
