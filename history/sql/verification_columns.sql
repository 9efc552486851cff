with span as (
  select
    block.column_name,
    begins + (number - 1) * {length} as begin,
    span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) as rows
  from {storage} as block
  cross join unnest(block.n, block.nans, block.nulls) with ordinality as span (n, nans, nulls, number)
  where block.level = {level} and split_part(block.column_name, '.', 1) = any({there}::text[])
), compared as (
  select *, max(rows) over (partition by begin) as most from span
)
select column_name, count(*), min(begin) from compared where rows < most group by 1 order by 1
