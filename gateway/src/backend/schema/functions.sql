select * from (
-- functions: a row for the value, or one for each column of the rows. A condition `prosrc ~` would have PostgreSQL match
-- its statistics, a hundred bodies, to plan this
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
    from pg_catalog.parse_ident(pg_catalog.substr(named.name, pg_catalog.length('function ') + 1)) as parts
  ) as path (parts, number)
  join pg_catalog.pg_proc p on p.proname = path.parts[path.number] and p.prokind <> 'p'
  join pg_catalog.pg_namespace of
    on of.oid = p.pronamespace and of.nspname = any (case path.number when 1 then pg_catalog.current_schemas(true) else path.parts[1:1] end)
  join pg_catalog.pg_type returned on returned.oid = p.prorettype
  cross join lateral (
    select ''::text, returned.oid, -1, 0
    where returned.typtype <> 'c' and (returned.typtype <> 'p' or p.proargmodes is null
      -- the columns of a query are not known, but the arguments are
      or pg_catalog.strpos(p.prosrc, E'\n-- compiled from T-SQL, ') > 0
        and pg_catalog.substring(p.prosrc, '\n-- rows ([^\n]+)\n$') is null)
    union all
    select coalesce(p.proargnames[index], ''), p.proallargtypes[index], -1, index
    from pg_catalog.generate_subscripts(p.proargmodes, 1) as index
    where p.proargmodes[index] in ('t', 'o', 'b') and p.proretset
      -- one of T-SQL has the types of its rows with their lengths
      and (pg_catalog.strpos(p.prosrc, E'\n-- compiled from T-SQL, ') = 0
        or pg_catalog.substring(p.prosrc, '\n-- rows ([^\n]+)\n$') is not null)
    union all
    select a.attname, a.atttypid, a.atttypmod, a.attnum
    from pg_catalog.pg_attribute a
    where returned.typtype = 'c' and a.attrelid = returned.typrelid and a.attnum > 0 and not a.attisdropped
  ) as result (name, type, typmod, index)
  join pg_catalog.pg_type t on t.oid = result.type
  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace and n.nspname = 'tsql'
 order by named.name, p.oid, result.index
) as functions
