select substr(setting, strpos(setting, '=') + 1)
from pg_db_role_setting
join pg_database on pg_database.oid = setdatabase
cross join unnest(setconfig) as setting
where datname = current_database() and setrole = 0 and setting like 'TimeZone=%'
