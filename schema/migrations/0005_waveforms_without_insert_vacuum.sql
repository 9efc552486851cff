-- waveforms are not vacuumed for being new: see PARTITION_OPTIONS of partitions.py
do $$
declare
  part text;
begin
  for part in
    select partition.relname
    from pg_inherits
    join pg_class as partition on partition.oid = inhrelid
    join pg_class as log on log.oid = inhparent
    join pg_class as toast on toast.oid = partition.reltoastrelid
    where log.relnamespace = 'log'::regnamespace
      and log.relname in (select table_name from ringlog.logged_table)
      and coalesce(not toast.reloptions::text like '%autovacuum_vacuum_insert_threshold%', true)
  loop
    execute format('alter table log.%I set (toast.autovacuum_vacuum_insert_threshold = -1)', part);
  end loop;
end
$$;
