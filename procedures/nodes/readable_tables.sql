create or replace function ringlog.readable_tables() returns setof text
language sql stable parallel safe
as $$
  select substr(proname, 5)
  from pg_catalog.pg_proc
  where pronamespace = 'ringlog'::regnamespace
    and proname like 'get\_%'
    and has_function_privilege(oid, 'execute')
$$;
comment on function ringlog.readable_tables is
$$The tables of any server that the caller may read: those whose procedure get_<table> the caller may execute.$$;
grant execute on function ringlog.readable_tables to daq_reader, daq_table_reader;
