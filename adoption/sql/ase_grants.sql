-- ASE: who may do what with which object.
select g.name, p.action, o.name, p.protecttype
from sysprotects p, sysusers g, sysobjects o
where g.uid = p.uid and o.id = p.id and o.type in ('U', 'P', 'V')
order by o.name, g.name, p.action
