create or replace function ringlog.reads_captured(table_name text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- without a log, the table was dropped: readers of all tables read its captures
  select coalesce(
    has_table_privilege(log, 'select') and not row_security_active(log),
    pg_has_role('daq_reader', 'usage')
  )
  from (select to_regclass(format('weeks.%I', ringlog.table_now(reads_captured.table_name)))::oid) as known (log)
$$;
comment on function ringlog.reads_captured is
$$Whether the caller may read the captured rows of a table: who may read its log, and of a dropped table who may read
every table.$$;
grant execute on function ringlog.reads_captured to daq_reader, daq_table_reader;
