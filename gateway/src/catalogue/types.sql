-- Domains with their base types, enums, which are sent as text, and the attributes of the composite types among those
-- functions' arguments.
select t.oid, case t.typtype when 'd' then t.typbasetype else 'text'::regtype::oid end, '', 0, -1, 0, 0::oid
  from pg_catalog.pg_type t
 where t.typtype in ('d', 'e')
union all
-- the gateway's numbers (gateway/tsql/src/facts/types.rs, DATETIMEOFFSET_OID and SQL_VARIANT_OID)
select t.oid, known.oid, '', 0, -1, 0, 0::oid
  from pg_catalog.pg_type t
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace
  join (values ('datetimeoffset', 4294967295), ('sql_variant', 4294967294), ('ci_varchar', 1043), ('ci_char', 1042))
    as known (name, oid) on known.name = t.typname
 where n.nspname = 'tsql'
union all
select t.oid, 0, a.attname, a.atttypid, a.atttypmod, a.attnum,
       case when demand.oid is null then 0 else t.typrelid end
  from pg_catalog.pg_type t
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace
  join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
  -- an older database may lack it
 cross join pg_catalog.to_regprocedure('tsql.demand_columns(oid, text[])') as demand (oid)
 where t.typtype = 'c'
   and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'tsql', 'tsql_global')
   and t.oid in (
     select argument
       from pg_catalog.pg_proc p
      cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) as argument
      where p.oid = any (:functions)
   )
   and a.attnum > 0
   and not a.attisdropped
 order by 1, 6
