create or replace function ringlog.arrivals() returns table (table_name text, called timestamptz)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select caller.table_name, caller.called
  from ringlog.table_callers() as caller
  where caller.failed is distinct from caller.called
$$;
comment on function ringlog.arrivals is
$$The time at which the latest row of each table arrived over TDS, whatever time the row has. None for a table whose last
call was answered by an error. The server records calls every ten seconds.$$;
grant execute on function ringlog.arrivals to daq_reader, daq_table_reader;
