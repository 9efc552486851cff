select role.rolname,
  array_agg(granted.rolname order by granted.rolname)
    filter (where granted.rolname = any(%(groups)s)),
  not role.rolcanlogin,
  nullif(role.rolvaliduntil, 'infinity')::text,
  (select count(*) from pg_stat_activity as session where session.usename = role.rolname),
  (select setconfig from pg_db_role_setting where setrole = role.oid and setdatabase = 0)
from pg_roles as role
join pg_auth_members as membership on membership.member = role.oid
join pg_roles as granted on granted.oid = membership.roleid
group by role.oid, role.rolname, role.rolcanlogin, role.rolvaliduntil
having bool_or(granted.rolname = any(%(groups)s))
order by role.rolname
