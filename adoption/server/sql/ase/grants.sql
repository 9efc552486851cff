-- ASE: who may do what with which object (id 0: the database). Columns are bits: 0 is all of them.
select g.name, p.action, p.protecttype, p.id, o.name, p.columns, user_name(o.uid)
from sysprotects p, sysusers g, sysobjects o
where g.uid = p.uid and o.id = p.id and o.type in ('U', 'P', 'V', 'SF')
union all
select g.name, p.action, p.protecttype, 0, null, null, null
from sysprotects p, sysusers g
where g.uid = p.uid and p.id = 0
order by 5, 1, 2
