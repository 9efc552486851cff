-- ASE: the pieces of the texts of CHECK constraints (0x80 of the status).
select user_name(o.uid), o.name, object_name(k.constrid), d.text
from sysobjects o, sysconstraints k, syscomments d
where o.type = 'U' and k.tableid = o.id and k.status & 128 = 128 and d.id = k.constrid
order by o.name, k.constrid, d.colid
