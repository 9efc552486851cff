-- The arguments that callers of those functions see, in order: i(n), o(ut), b(oth). The columns of RETURNS TABLE are the
-- result set's.
select p.oid,
       coalesce(p.proargmodes[a.index], 'i'),
       coalesce(p.proargnames[a.index], ''),
       a.type
  from pg_catalog.pg_proc p
 cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
       with ordinality as a (type, index)
 where p.oid = any (:functions)
   and coalesce(p.proargmodes[a.index], 'i') in ('i', 'o', 'b')
 order by p.oid, a.index
