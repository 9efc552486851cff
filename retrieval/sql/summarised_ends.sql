select
  (
    select count(*) from ringlog.cold_week
    where table_name = {table} and recalled_until is null and rows > 0
      and begins < $3::timestamptz and ends > $2::timestamptz
  )::integer + (
    select count(*) from ringlog.dropped where table_name = {table} and until > $2
  )::integer,
  array_agg(came."time"),
  {arrays}
from unnest($1::timestamptz[]) as part (begins)
cross join lateral (
  select log."time", {columns}
  from {log} as log
  where log."time" >= part.begins and log."time" < part.begins + interval {length}
    and log."time" >= $2 and log."time" < $3
  order by log."time", log.seq_no
) as came
