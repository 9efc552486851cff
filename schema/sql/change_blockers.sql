select coalesce(nspname || '.' || relname, wanted.locktype), session.pid, session.usename,
  coalesce(host(session.client_addr), 'this machine'), session.application_name,
  to_char(session.xact_start, 'YYYY-MM-DD HH24:MI:SS'), session.state
from pg_locks as wanted cross join unnest(pg_blocking_pids(wanted.pid)) as blocking
join pg_stat_activity as session on session.pid = blocking
left join pg_class on pg_class.oid = wanted.relation
left join pg_namespace on pg_namespace.oid = relnamespace
where wanted.pid = %(pid)s and not wanted.granted
