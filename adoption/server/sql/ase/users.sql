-- ASE: users of the database, and their logins.
select u.name, l.name from sysusers u, master..syslogins l where l.suid = u.suid and u.uid > 1 and u.uid <> u.gid order by 1
