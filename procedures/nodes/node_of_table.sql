create or replace function ringlog.node_of_table(table_name text) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
  -- there since there are nodes
  if to_regclass('ringlog.stand_in') is null then
    return null;
  end if;
  return (select known.node from ringlog.stand_in as known where known.table_name = table_name limit 1);
end
$$;
comment on function ringlog.node_of_table is
$$The node that has a table; null: this server, or there is no such table.$$;
grant execute on function ringlog.node_of_table to daq_reader, daq_table_reader, signal_archivist;
