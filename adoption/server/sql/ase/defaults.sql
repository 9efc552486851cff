-- ASE: the pieces of the texts of columns' defaults.
select user_name(o.uid), o.name, c.name, d.text
from sysobjects o, syscolumns c, syscomments d
where o.type = 'U' and c.id = o.id and c.cdefault <> 0 and d.id = c.cdefault
order by o.name, c.colid, d.colid
