create or replace function ringlog.demand_table_here(table_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  node constant text := ringlog.node_of_table(table_name);
begin
  if node is not null then
    -- the gateway calls the procedure on the node that the detail names
    raise exception 'table % is on another server', table_name using errcode = 'RL006', detail = node;
  end if;
end
$$;
comment on function ringlog.demand_table_here is
$$Does nothing when this table is on this server or does not exist. Error: it is on a node (RL006, whose detail is the
node).$$;
grant execute on function ringlog.demand_table_here to daq_reader, daq_table_reader;
