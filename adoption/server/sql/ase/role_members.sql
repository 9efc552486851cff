-- ASE: logins of roles.
select r.name, l.name
from master..sysloginroles k, master..syssrvroles r, master..syslogins l
where r.srid = k.srid and l.suid = k.suid
order by 1, 2
