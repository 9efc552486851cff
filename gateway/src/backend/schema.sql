select * from (
select named.name, case when c.relpersistence = 't' then 0 else c.oid::bigint end, a.attname::text,
    case when t.typtype = 'd' then t.typbasetype else a.atttypid end::bigint,
    case when t.typtype = 'd' then t.typtypmod else a.atttypmod end,
    case when n.oid is not null and t.typtype <> 'd' then t.typname end,
    coalesce(nullif(said.found[2], ''), case when n.oid is not null and t.typtype = 'd' then t.typname end),
    c.relkind in ('v', 'm') and pg_catalog.pg_relation_is_updatable(c.oid, false) = 0,
    pg_catalog.concat(n.nspname || '.', t.typname, ' ', a.atttypmod, ' ', said.found[2]),
    a.attidentity <> '', a.attgenerated <> ''
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_class c
    on c.oid = case when named.name !~ '^type ' then pg_catalog.to_regclass(named.name)::oid end and c.relkind in ('r', 'p', 'v', 'm', 'f')
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_catalog.pg_type t on t.oid = a.atttypid
  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
  left join lateral pg_catalog.regexp_match(
    pg_catalog.col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') said (found) on true
 order by c.oid, a.attnum
) as columns
union all
-- user types: the declaration
select named.name, t.oid::bigint, pg_catalog.substring(d.description, '^T-SQL ([^\n]*)'), 25, -1, null, null, false, '', false, false
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_type t
    on named.name = 'type ' || t.typname and t.typtype = 'd'
    and t.typnamespace in (pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema())),
      pg_catalog.to_regnamespace(pg_catalog.quote_ident(sys.current_database())))
  join pg_catalog.pg_description d
    on d.objoid = t.oid and d.classoid = 'pg_catalog.pg_type'::regclass and d.description like 'T-SQL "%'
