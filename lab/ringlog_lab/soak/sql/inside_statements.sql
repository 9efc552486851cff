select
  -- the same statement of all tables together, whatever their columns
  left(
    regexp_replace(
      regexp_replace(query, '\s+', ' ', 'g'),
      '((put|get)_|\m(online|ring|weeks|log|summary|closed)"?\."?)\w+"?', '\1…', 'g'
    ),
    60
  ) as text,
  toplevel as outer,
  sum(calls)::bigint as calls,
  (sum(total_exec_time) / 1000)::float8 as seconds,
  sum(shared_blks_hit)::bigint as hit,
  sum(shared_blks_read)::bigint as read,
  sum(wal_bytes)::bigint as wal,
  sum(wal_fpi)::bigint as images
from soak.pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database())
group by 1, 2
order by seconds desc
