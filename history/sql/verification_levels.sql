with span as (
  select block.level, block.column_name, date_bin(
    {length}, begins + (number - 1) * block.level * interval '1 second', 'epoch'
  ) as begin, span.n
  from {storage} as block cross join unnest(block.n) with ordinality as span (n, number)
  where block.level in ({shorter}, {level}) and block.column_name not like '%.severity'
)
select column_name, begin from span
group by column_name, begin
having sum(n) filter (where level = {level}) > 0
  and sum(n) filter (where level = {level}) <> sum(n) filter (where level = {shorter})
order by 2, 1
