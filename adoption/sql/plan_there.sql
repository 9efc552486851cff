select lower(name) from (
  select relname, relnamespace from pg_class union all select proname, pronamespace from pg_proc
  union all select tgname, relnamespace from pg_trigger join pg_class on pg_class.oid = tgrelid
) as there (name, namespace)
join pg_namespace on pg_namespace.oid = namespace where nspname = %s
