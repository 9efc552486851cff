select * from (
select named.name, case when c.relpersistence = 't' then 0 else c.oid::bigint end, a.attname::text,
    case when t.typtype = 'd' then t.typbasetype else a.atttypid end::bigint,
    case when t.typtype = 'd' then t.typtypmod else a.atttypmod end,
    case when n.oid is not null and t.typtype <> 'd' then t.typname end,
    coalesce(nullif(declared.parts[2], ''), case when n.oid is not null and t.typtype = 'd' then t.typname end),
    c.relkind in ('v', 'm') and pg_catalog.pg_relation_is_updatable(c.oid, false) = 0,
    pg_catalog.concat(n.nspname || '.', t.typname, ' ', a.atttypmod, ' ', declared.parts[2]),
    a.attidentity <> '', a.attgenerated <> '',
    case when c.relhastriggers then (
      select pg_catalog.string_agg(case when tgtype & 4 > 0 then 'insert' when tgtype & 8 > 0 then 'delete' else 'update' end, ' ')
      from pg_catalog.pg_trigger
      join pg_catalog.pg_proc as fired on fired.oid = tgfoid and fired.prosrc like '%-- compiled from T-SQL, %'
      where tgrelid = c.oid and tgenabled <> 'D'
    ) end
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_class c
    on c.oid = case
      when named.name !~ '^(type|function) ' and not exists (
        -- of a schema that the login may not use to_regclass() would be an error
        select from pg_catalog.pg_namespace of
        where not pg_catalog.has_schema_privilege(of.oid, 'usage')
          and (pg_catalog.starts_with(named.name, pg_catalog.quote_ident(of.nspname) || '.')
            or pg_catalog.starts_with(named.name, '"' || of.nspname || '".')))
      then pg_catalog.to_regclass(named.name)::oid
    end and c.relkind in ('r', 'p', 'v', 'm', 'f')
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_catalog.pg_type t on t.oid = a.atttypid
  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
  left join lateral pg_catalog.regexp_match(
    pg_catalog.col_description(a.attrelid, a.attnum), '^T-SQL "((?:[^"]|"")+)" ?((?:(?! ?as ")[^\n])*)') declared (parts) on true
 order by c.oid, a.attnum
) as columns
union all
-- functions: a row for the value, or one for each column of the rows
select * from (
select named.name, p.oid::bigint, result.name, case when t.typtype = 'd' then t.typbasetype else t.oid end::bigint,
    case when t.typtype = 'd' then t.typtypmod else result.typmod end,
    case when n.oid is not null and t.typtype <> 'd' then t.typname end,
    coalesce(
      case result.index when 0 then pg_catalog.substring(p.prosrc, '\n-- returns ([^\n]+)\n$')
        else pg_catalog.split_part(pg_catalog.substring(p.prosrc, '\n-- rows ([^\n]+)\n$'), ';',
          pg_catalog.row_number() over (partition by named.name, p.oid order by result.index)::integer) end,
      case when n.oid is not null and t.typtype = 'd' then t.typname end),
    false, pg_catalog.concat_ws(' ', p.pronargs - p.pronargdefaults, (
      select pg_catalog.string_agg(coalesce(own.nspname || '.' || one.typname, one.oid::text), ' ' order by given.index)
      from pg_catalog.unnest(p.proargtypes::oid[]) with ordinality as given (type, index)
      join pg_catalog.pg_type domain on domain.oid = given.type
      left join pg_catalog.pg_namespace own on own.oid = domain.typnamespace and own.nspname = 'tsql'
      join pg_catalog.pg_type one
        on one.oid = case when domain.typtype = 'd' and own.oid is null then domain.typbasetype else domain.oid end
    )), false, false,
    case when p.prosrc ~ '\n-- compiled from T-SQL, ' then case when p.proretset then 'rows' else 'value' end end
  from pg_catalog.unnest(:names) as named (name)
  cross join lateral (
    select parts, pg_catalog.cardinality(parts)
    from pg_catalog.parse_ident(case when named.name ~ '^function ' then pg_catalog.substr(named.name, 10) end) as parts
  ) as path (parts, number)
  join pg_catalog.pg_proc p on p.proname = path.parts[path.number] and p.prokind <> 'p'
  join pg_catalog.pg_namespace of
    on of.oid = p.pronamespace and of.nspname = any (case path.number when 1 then pg_catalog.current_schemas(true) else path.parts[1:1] end)
  join pg_catalog.pg_type returned on returned.oid = p.prorettype
  cross join lateral (
    select ''::text, returned.oid, -1, 0
    where returned.typtype <> 'c' and (returned.typtype <> 'p' or p.proargmodes is null
      -- the columns of a query are not known, but the arguments are
      or p.prosrc ~ '\n-- compiled from T-SQL, ' and p.prosrc !~ '\n-- rows [^\n]+\n$')
    union all
    select coalesce(p.proargnames[index], ''), p.proallargtypes[index], -1, index
    from pg_catalog.generate_subscripts(p.proargmodes, 1) as index
    where p.proargmodes[index] in ('t', 'o', 'b') and p.proretset
      -- one of T-SQL has the types of its rows with their lengths
      and (p.prosrc !~ '\n-- compiled from T-SQL, ' or p.prosrc ~ '\n-- rows [^\n]+\n$')
    union all
    select a.attname, a.atttypid, a.atttypmod, a.attnum
    from pg_catalog.pg_attribute a
    where returned.typtype = 'c' and a.attrelid = returned.typrelid and a.attnum > 0 and not a.attisdropped
  ) as result (name, type, typmod, index)
  join pg_catalog.pg_type t on t.oid = result.type
  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
 order by named.name, p.oid, result.index
) as functions
union all
-- user types: the declaration
select named.name, t.oid::bigint, pg_catalog.substring(d.description, '^T-SQL ([^\n]*)'), 25, -1, null, null, false, '', false, false, null
  from pg_catalog.unnest(:names) as named (name)
  join pg_catalog.pg_type t
    on named.name = 'type ' || t.typname and t.typtype = 'd'
    and t.typnamespace in (pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema())),
      pg_catalog.to_regnamespace(pg_catalog.quote_ident(sys.current_database())))
  join pg_catalog.pg_description d
    on d.objoid = t.oid and d.classoid = 'pg_catalog.pg_type'::regclass and d.description like 'T-SQL "%'
