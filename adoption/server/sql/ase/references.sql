-- ASE: foreign keys within the database, with up to eight columns.
select
  user_name(o.uid), o.name, object_name(r.constrid), user_name(p.uid), p.name,
  col_name(r.tableid, r.fokey1), col_name(r.reftabid, r.refkey1),
  col_name(r.tableid, r.fokey2), col_name(r.reftabid, r.refkey2),
  col_name(r.tableid, r.fokey3), col_name(r.reftabid, r.refkey3),
  col_name(r.tableid, r.fokey4), col_name(r.reftabid, r.refkey4),
  col_name(r.tableid, r.fokey5), col_name(r.reftabid, r.refkey5),
  col_name(r.tableid, r.fokey6), col_name(r.reftabid, r.refkey6),
  col_name(r.tableid, r.fokey7), col_name(r.reftabid, r.refkey7),
  col_name(r.tableid, r.fokey8), col_name(r.reftabid, r.refkey8)
from sysobjects o, sysreferences r, sysobjects p
where o.type = 'U' and r.tableid = o.id and p.id = r.reftabid and r.frgndbname is null and r.pmrydbname is null and r.keycnt <= 8
order by o.name, r.constrid
