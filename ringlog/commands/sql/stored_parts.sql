with relation as (
  select pg_class.oid, nspname, relname, reltuples
  from pg_class
  join pg_namespace on pg_namespace.oid = relnamespace
  where relkind in ('r', 'm') and (
    (nspname in ('online', 'ring', 'closed', 'summary', 'parameter_rows') and relname = :table)
    or pg_class.oid in (
      select relid from pg_partition_tree(to_regclass(format('%I.%I', 'weeks', cast(:table as text))))
    )
  )
)
select
  case nspname when 'online' then 'ring' when 'parameter_rows' then 'parameters' else nspname end as part,
  count(*) as relations,
  -- a table that was never analysed has -1
  case when bool_and(reltuples >= 0) then sum(reltuples)::bigint end as rows,
  sum(pg_total_relation_size(oid))::bigint as bytes
from relation
group by 1
order by bytes desc
