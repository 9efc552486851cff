create or replace view {view} as
select
  span.column_name,
  span."time",
  span.n[number] as n,
  nullif(span.min[number], 'NaN') as min,
  nullif(span.max[number], 'NaN') as max,
  case when span.n[number] > 0 then span.mean[number] end as mean,
  nullif(span.first[number], 'NaN') as first,
  nullif(span.last[number], 'NaN') as last,
  case when span.n[number] > 0 then sqrt(span.squares[number] / span.n[number]) end as std,
  coalesce(span.nans[number], 0) as nans,
  coalesce(span.nulls[number], 0) as nulls,
  span.begins as block
-- not unnest, which would read arrays that the query does not use
from (
  select
    block.*,
    generate_series(1, cardinality(block.n)) as number,
    generate_series(
      block.begins, block.begins + (cardinality(block.n) - 1) * interval {length}, interval {length}
    ) as "time"
  from {storage} as block
  where block.level = {level}
) as span
where span.n[number] > 0 or span.nans[number] > 0 or span.nulls[number] > 0
