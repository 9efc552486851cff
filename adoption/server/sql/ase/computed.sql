-- ASE 15 and later: the pieces of the texts of computed columns.
select user_name(o.uid), o.name, c.name, d.text
from sysobjects o, syscolumns c, syscomments d
where o.type = 'U' and c.id = o.id and c.computedcol is not null and d.id = c.computedcol
order by o.name, c.colid, d.colid
