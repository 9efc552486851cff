-- The arguments that callers of those functions see, in order: i(n), o(ut), b(oth). The columns of RETURNS TABLE are the
-- result set's.
select p.oid,
       coalesce(p.proargmodes[a.place], 'i'),
       coalesce(p.proargnames[a.place], ''),
       a.type
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
 cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
       with ordinality as a (type, place)
 where p.prokind in ('f', 'p')
   and :schemas
   and (n.nspname not in ('sys', 'sybsystemprocs') or p.proname like 'sp\_%')
   and p.provariadic = 0
   and coalesce(p.proargmodes[a.place], 'i') in ('i', 'o', 'b')
 order by p.oid, a.place
