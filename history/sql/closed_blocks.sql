with bound as materialized (
  select case when exists (
    select from pg_attribute
    where attrelid = {log}::regclass and attname = any($3) and atttypid <> all({numbers})
  ) then $5::integer else $4::integer end as most
),
block as materialized (
  select block.begins, block.ends, block.rows
  from {valid}
    and block.begins >= coalesce(
      (
        select begins from {storage}
        where column_name = 'time' and begins <= $1::timestamptz
        order by begins desc
        limit 1
      ),
      '-infinity'
    )
    and block.begins < $2::timestamptz
    and block.ends > $1
  order by block.begins
  limit (select most from bound)
)
select block.begins, block.ends, block.rows, wanted.name, part.type::integer, part.content, bound.most
from bound
cross join block
cross join unnest($3::text[]) as wanted (name)
join {storage} as part on part.column_name = wanted.name and part.begins = block.begins
where wanted.name = 'time' or exists (
  select from pg_attribute
  where attrelid = {log}::regclass and attname = wanted.name
    and attnum = part.attnum and atttypid = part.type and atttypmod = part.modifier
)
order by block.begins
