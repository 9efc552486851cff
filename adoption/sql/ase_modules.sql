-- ASE: the pieces of the texts of procedures, views and triggers.
select o.name, o.type, c.text
from sysobjects o, syscomments c
where o.type in ('P', 'V', 'TR', 'SF') and c.id = o.id
order by o.type, o.name, c.number, c.colid
