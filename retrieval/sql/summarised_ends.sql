select
  (
    select count(*) from ringlog.cold_week
    where table_name = {table} and recalled_until is null and rows > 0
      and begins < $3::timestamptz and ends > $2::timestamptz
  )::integer + (
    select count(*) from ringlog.dropped where table_name = {table} and until > $2
  )::integer,
  array_agg(came."time" order by came."time", came.seq_no),
  {arrays}
from unnest($1::timestamptz[]) as part (begins)
cross join lateral (
  select "time", seq_no, {columns}
  from {log} as log
  where log."time" >= part.begins and log."time" < part.begins + interval {length}
    and log."time" >= $2 and log."time" < $3
  offset 0
) as came
