create or replace function ringlog.table_now(name text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$ select coalesce((select known.table_name from ringlog.former_table as known where known.former = name), name) $$;
comment on function ringlog.table_now is
$$The current name of a table: a writer that was started before a rename uses the former name.$$;
grant execute on function ringlog.table_now to daq_reader, daq_table_reader;
