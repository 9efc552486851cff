-- ASE: foreign keys of other databases, and of more than eight columns.
select o.name, object_name(r.constrid)
from sysobjects o, sysreferences r
where o.type = 'U' and r.tableid = o.id and (r.frgndbname is not null or r.pmrydbname is not null or r.keycnt > 8)
order by o.name, r.constrid
