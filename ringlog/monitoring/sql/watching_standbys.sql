select
  application_name as name,
  coalesce(host(client_addr), 'local') as host,
  pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as behind,
  coalesce(extract(epoch from replay_lag), 0)::float8 as seconds
from pg_stat_replication
where replay_lsn is not null and not pg_is_in_recovery()
order by 1, 2
