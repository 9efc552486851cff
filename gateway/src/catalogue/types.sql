-- Domains with what they stand for, enums as the text they are told in, and the attributes of composite
-- types.
select t.oid, t.typtype, case t.typtype when 'd' then t.typbasetype else 'text'::regtype::oid end, 0, '', 0,
       -1
  from pg_catalog.pg_type t
 where t.typtype in ('d', 'e')
union all
select t.oid, t.typtype, 0, a.attnum, a.attname, a.atttypid, a.atttypmod
  from pg_catalog.pg_type t
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace
  join pg_catalog.pg_attribute a on a.attrelid = t.typrelid
 where t.typtype = 'c'
   and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
   and exists (select
                 from pg_catalog.pg_proc p
                where t.oid = any (coalesce(p.proallargtypes, p.proargtypes::oid[])))
   and a.attnum > 0
   and not a.attisdropped
 order by 1, 4
