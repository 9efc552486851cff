with
  schema as materialized (
    select oid, nspname, ctid, xmin from pg_namespace where nspname = any(:schemas)
  ),
  object as materialized (
    select pg_class.oid, pg_class.ctid, pg_class.xmin, relname, relkind, nspname = :recent as moves
    from pg_class join schema on schema.oid = relnamespace
    where not relispartition
  ),
  relation as materialized (select oid, moves from object where relkind in ('r', 'p', 'v', 'm', 'f', 'c')),
  found (kind, rows, digest) as (
    -- by the index: most columns are partitions'
    select 'columns', sum(rows), sum(digest)
    from relation
    cross join lateral (
      {columns}
      offset 0
    ) as columns (kind, rows, digest)
    union all
    {kinds}
  )
select
  string_agg(format('%s %s %s', kind, rows, digest), ', ' order by kind) as catalogue,
  concat_ws(
    ' ',
    current_setting('server_version_num'),
    (select oid from pg_database where datname = current_database())
  ) as server,
  pg_snapshot_xmax(pg_current_snapshot())::text::numeric as next_transaction
from found
