with
  relation as (
    select nspname as schema, relkind, relam, c.oid
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
  ),
  tree as (
    select (soak.bt_metap(relation.oid::regclass::text)).level
    from relation
    join pg_am on pg_am.oid = relam
    where schema in ('online', 'ring', 'log') and relkind = 'i' and amname = 'btree'
  )
select
  (select coalesce(sum(shared_blks_hit), 0)::bigint from soak.pg_stat_statements where toplevel) as hit,
  (select coalesce(sum(shared_blks_read), 0)::bigint from soak.pg_stat_statements where toplevel) as read,
  (select coalesce(sum(wal_bytes), 0)::bigint from soak.pg_stat_statements where toplevel) as wal,
  (select coalesce(sum(wal_fpi), 0)::bigint from soak.pg_stat_statements where toplevel) as images,
  (
    select coalesce(jsonb_object_agg(level, number), '{}')
    from (select level::text, count(*) as number from tree group by 1)
  ) as heights,
  (
    select coalesce(jsonb_object_agg(schemaname, dead), '{}')
    from (select schemaname, sum(n_dead_tup)::bigint as dead from pg_stat_all_tables group by 1) where dead > 0
  ) as dead,
  (select sum(autovacuum_count)::bigint from pg_stat_all_tables) as vacuums,
  (select sum(autoanalyze_count)::bigint from pg_stat_all_tables) as analyzes,
  (select count(*) from relation) as relations,
  (
    select sum(pg_total_relation_size(oid))::bigint from relation where schema = 'pg_catalog' and relkind = 'r'
  ) as catalogue
