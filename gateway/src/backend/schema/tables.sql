select * from (
-- tables and views: a row for each column
select named.name, case when c.relpersistence = 't' then 0 else c.oid::bigint end, a.attname::text,
    case when t.typtype = 'd' then t.typbasetype else a.atttypid end::bigint,
    case when t.typtype = 'd' then t.typtypmod else a.atttypmod end,
    case when n.oid is not null and t.typtype <> 'd' then t.typname end,
    coalesce(nullif(declared.parts[2], ''), case when n.oid is not null and t.typtype = 'd' then t.typname end),
    c.relkind in ('v', 'm') and pg_catalog.pg_relation_is_updatable(c.oid, false) = 0,
    pg_catalog.concat(n.nspname::text || '.', t.typname, ' ', a.atttypmod, ' ', declared.parts[2]),
    a.attidentity <> '', a.attgenerated <> '',
    case when c.relhastriggers then (
      select pg_catalog.string_agg(case when tgtype & 4 > 0 then 'insert' when tgtype & 8 > 0 then 'delete' else 'update' end, ' ')
      from pg_catalog.pg_trigger
      join pg_catalog.pg_proc as fired on fired.oid = tgfoid and pg_catalog.strpos(fired.prosrc, '-- compiled from T-SQL, ') > 0
      where tgrelid = c.oid and tgenabled <> 'D'
    ) end
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_class c
    on c.oid = case
      when not exists (
        -- of a schema that the login may not use to_regclass() would be an error
        select from pg_catalog.pg_namespace of
        where not pg_catalog.has_schema_privilege(of.oid, 'usage')
          and (pg_catalog.starts_with(named.name, pg_catalog.quote_ident(of.nspname) || '.')
            or pg_catalog.starts_with(named.name, '"' || of.nspname::text || '".')))
      then pg_catalog.to_regclass(named.name)::oid
    end and c.relkind in ('r', 'p', 'v', 'm', 'f')
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_catalog.pg_type t on t.oid = a.atttypid
  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
  left join lateral pg_catalog.regexp_match(
    pg_catalog.col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') declared (parts) on true
 order by c.oid, a.attnum
) as columns
