-- rings are not analyzed by themselves, and logs have statistics of their keys only: see tables.py, partitions.py
do $$
declare
  ring record;
  part record;
begin
  for ring in
    select nspname as schema, relname as name
    from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace
    where nspname in ('online', 'ring') and relkind = 'r'
      and coalesce(not reloptions::text like '%autovacuum_analyze_threshold%', true)
      and relname in (select table_name from ringlog.logged_table)
  loop
    execute format(
      'alter table %I.%I set (autovacuum_analyze_threshold = 2147483647)', ring.schema, ring.name
    );
  end loop;
  for part in
    select relname as name, string_agg(format('alter column %I set statistics 0', attname), ', ') as actions
    from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace
    join pg_attribute on attrelid = pg_class.oid
    where nspname = 'log' and relkind in ('p', 'r') and attnum > 0 and not attisdropped
      and attname not in ('seq_no', 'time') and coalesce(attstattarget, -1) <> 0
    group by relname
  loop
    execute format('alter table log.%I %s', part.name, part.actions);
  end loop;
end
$$;
