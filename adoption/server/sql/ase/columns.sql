-- ASE: columns of the tables, in their order, by the types that user-defined types stand for: the first of those with
-- the same storage. Bits of the status: 8, NULL is allowed; 128, it is an identity.
select
  user_name(o.uid), o.name, c.name,
  case when t.usertype < 100 then t.name else (
    select b.name from systypes b
    where b.usertype = (select min(s.usertype) from systypes s where s.type = t.type and s.usertype < 100)
  ) end,
  c.length, c.prec, c.scale, c.status & 8, null, null, c.status & 128, null
from sysobjects o, syscolumns c, systypes t
where o.type = 'U' and c.id = o.id and t.usertype = c.usertype
order by o.name, c.colid
