select datname::text
from pg_database
where datname in ('postgres', 'template1') and has_database_privilege('public', oid, 'connect')
order by 1
