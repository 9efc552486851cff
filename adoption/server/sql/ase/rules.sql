-- ASE: the pieces of the texts of rules bound to columns.
select user_name(o.uid), o.name, c.name, object_name(c.domain), d.text
from sysobjects o, syscolumns c, syscomments d
where o.type = 'U' and c.id = o.id and c.domain <> 0 and d.id = c.domain
order by o.name, c.colid, d.colid
