-- The row types of arguments, each with a digest of its owner and of the columns that types.sql reads. Columns can be
-- renamed without a change of the row in pg_type or pg_class.
select t.oid,
       pg_catalog.md5(
         t.typowner || pg_catalog.string_agg(
           pg_catalog.format('%s %s %s %L %s', a.attnum, a.atttypid, a.atttypmod, a.attname, demand.oid), ' '
           order by a.attnum
         )
       )
  from pg_catalog.pg_type t
  join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
 cross join pg_catalog.to_regprocedure('tsql.demand_columns(oid, text[])') as demand (oid)
 where t.typtype = 'c'
   and t.oid in (
     select argument
       from pg_catalog.pg_proc p
       join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) as argument
      where :schemas
   )
   and a.attnum > 0
   and not a.attisdropped
 group by t.oid, t.typowner
