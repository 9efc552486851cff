-- ASE: users of groups (group 0 is public).
select g.name, u.name from sysusers u, sysusers g where g.uid = u.gid and u.gid <> 0 and u.uid <> u.gid order by 1, 2
