with bound as materialized (
  select (
    select begins from {storage}
    where column_name = 'time' and begins < first.begins and rows > 0
    order by begins desc
    limit 1
  ) as begins
  from (
    select begins from {storage}
    where column_name = 'time' and begins < $1::timestamptz
    order by begins desc
    limit 1
  ) as first
), valid as (
  select block.begins, block.ends, block.xmin::text as made, lag(block.ends) over (
    order by block.begins
  ) as until
  from bound
  cross join {valid}
    and block.begins >= bound.begins
    and block.begins < $2::timestamptz
  order by block.begins
  limit 5001
)
select md5(string_agg(concat_ws(' ', begins, made), ',' order by begins))
from valid
having count(*) < 5001 and min(begins) = (select begins from bound) and max(ends) >= $2
  and bool_and(until is null or until = begins)
