select
  (extract(epoch from summarised.until) * 1000000)::bigint,
  to_json(summarised.levels)::text,
  (
    select json_agg(distinct (extract(epoch from mark."time") * 1000000)::bigint)
    from ringlog.summary_mark as mark
    where mark.table_name = $1 and mark."time" >= $4::timestamptz and mark."time" < $5::timestamptz
      and (mark.column_name is null or mark.column_name = $6)
  )::text
from ringlog.summarised
where summarised.table_name = $1 and summarised.until is not null
  -- only for readers of all rows of both
  and has_table_privilege(to_regclass($2), 'select')
  and not row_security_active(to_regclass($3))
