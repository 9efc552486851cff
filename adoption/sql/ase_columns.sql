-- ASE: columns of the tables, in their order; bit 8 of the status: NULL is allowed.
select o.name, c.name, t.name, c.length, c.prec, c.scale, c.status & 8
from sysobjects o, syscolumns c, systypes t
where o.type = 'U' and c.id = o.id and t.usertype = c.usertype
order by o.name, c.colid
