create or replace function ringlog.node_of_tables(names text[]) returns text
language plpgsql stable
as $$
#variable_conflict use_variable
declare
  asked record;
  schema text;
  node text;
  here text;
  there text;
  of_node text;
begin
  for asked in
    select
      name,
      relation,
      pg_catalog.cardinality(parts) > 1 as has_schema,
      case when pg_catalog.cardinality(parts) > 1 then parts[1] end as schema,
      parts[pg_catalog.cardinality(parts)] as table_name
    from pg_catalog.unnest(names) as name
    cross join lateral (
      -- a system view of another database is called as a function
      select
        case when name not like '%)' then pg_catalog.parse_ident(name) end as parts,
        case when name not like '%)' then pg_catalog.to_regclass(name) end as relation
    ) as parsed
  loop
    schema := asked.schema;
    if not asked.has_schema then
      -- a name unknown here may be a view of summaries on the node
      select nspname into schema
      from pg_catalog.pg_class
      join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
      where pg_class.oid = asked.relation;
      schema := coalesce(schema, pg_catalog.current_schema());
    end if;
    node := null;
    if schema in (
      'online', 'log', 'weeks', 'recent', 'archive', 'ten_seconds', 'minute', 'ten_minutes', 'hour', 'day'
    ) then
      node := ringlog.node_of_table(asked.table_name);
    end if;
    if node is null then
      if asked.has_schema is null or asked.relation is not null then
        here := coalesce(here, asked.name);
      end if;
      continue;
    end if;
    if not asked.has_schema and schema <> pg_catalog.current_schema() then
      raise exception 'table % is on node %: name it with its database, %..%', asked.table_name, node, schema,
        asked.table_name
        using errcode = 'feature_not_supported';
    end if;
    if of_node <> node then
      raise exception 'table % is on node % and table % on node %: a query reads the tables of one server',
        there, of_node, asked.table_name, node
        using errcode = 'feature_not_supported';
    end if;
    there := asked.table_name;
    of_node := node;
  end loop;
  if of_node is not null and here is not null then
    raise exception 'table % is on node %, and % is not: a query reads the tables of one server', there, of_node, here
      using errcode = 'feature_not_supported';
  end if;
  return of_node;
end
$$;
comment on function ringlog.node_of_tables is
$$The node that has all of these tables, whose names are as in SQL; null: none is on a node. Names of tables that do not
exist are ignored. Error (0A000): they are on several servers.$$;
grant execute on function ringlog.node_of_tables to daq_reader, daq_table_reader;
