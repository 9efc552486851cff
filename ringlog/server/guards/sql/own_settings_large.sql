select rolname::text, datname::text, sum(length(setting))::integer, array_agg(name)
from pg_db_role_setting
join pg_roles on pg_roles.oid = setrole and not rolsuper
left join pg_database on pg_database.oid = setdatabase
cross join unnest(setconfig) as setting cross join split_part(setting, '=', 1) as name
where name <> all(%s)
group by rolname, datname, setconfig
having sum(length(setting)) > %s
