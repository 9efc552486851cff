-- The T-SQL declarations of the columns of some tables that RowDescription lacks: the name in its case, and the type,
-- from the column's comment (sql/ddl/declarations.sql) or a domain of schema tsql; whether it is not null, an identity
-- column, computed. Also the oids of types of schema tsql, as rows without a column.
select a.attrelid, a.attnum, pg_catalog.replace(declared.parts[1], '""', '"'), coalesce(nullif(declared.parts[2], ''), t.typname),
    a.attnotnull, a.attidentity <> '', a.attgenerated <> ''
  from pg_catalog.pg_attribute a
  left join (pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql')
    on t.oid = a.atttypid and t.typtype = 'd'
  left join lateral pg_catalog.regexp_match(
    pg_catalog.col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') declared (parts) on true
 where a.attrelid = any (array[:tables]::oid[])
   and a.attnum > 0
   and (declared.parts is not null or t.oid is not null or a.attnotnull or a.attidentity <> '' or a.attgenerated <> '')
union all
select coalesce(pg_catalog.to_regtype('tsql.' || name)::oid, 0), 0::smallint, name, null, false, false, false
  from (values ('datetimeoffset'), ('sql_variant'), ('ci_varchar'), ('ci_char')) as types (name)
