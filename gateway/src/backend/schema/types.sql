select named.name, t.oid::bigint, pg_catalog.substring(d.description, '^T-SQL ([^\n]*)'), 25, -1, null, null, false, '', false, false, null
  -- user types: the declaration
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_type t
    on named.name = 'type ' || t.typname and t.typtype = 'd'
    and t.typnamespace in (pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema())),
      pg_catalog.to_regnamespace(pg_catalog.quote_ident(sys.current_database())))
  join pg_catalog.pg_description d
    on d.objoid = t.oid and d.classoid = 'pg_catalog.pg_type'::regclass and d.description like 'T-SQL "%'
