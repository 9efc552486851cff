-- ASE: the pieces of the texts of procedures, views and triggers.
select user_name(o.uid), o.name, o.type, c.number, c.text
from sysobjects o, syscomments c
where o.type in ('P', 'V', 'TR', 'SF') and c.id = o.id
order by o.type, o.name, c.number, c.colid
