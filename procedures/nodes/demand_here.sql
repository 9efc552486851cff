create or replace function ringlog.demand_here(names text[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  asked text[];
  nodes text[];
begin
  -- the name of a waveform's scalar: the signal's name, then the scalar's
  select array_agg(name), array_agg(distinct elsewhere.node) into asked, nodes
  from unnest(names) as name
  join lateral (
    select known.node
    from ringlog.signal_elsewhere as known
    where known.signal = name or known.signal = regexp_replace(name, '\.(min|max|mean|rms|length)$', '')
    limit 1
  ) as elsewhere on true;
  if nodes is null then
    return;
  end if;
  if cardinality(nodes) > 1 or cardinality(asked) < cardinality(names) then
    raise exception 'the signals are on several servers (signal ''%'' on node %): request those of one server at a time',
      asked[1], nodes[1]
      using errcode = 'invalid_parameter_value';
  end if;
  -- the gateway calls the procedure on the node that the detail names
  raise exception 'signal ''%'' is on another server', asked[1] using errcode = 'RL006', detail = nodes[1];
end
$$;
comment on function ringlog.demand_here is
$$Does nothing when these signals are on this server or do not exist. Errors: they are on a node (RL006, whose detail is
the node), or on several servers (22023).$$;
grant execute on function ringlog.demand_here to daq_reader, daq_table_reader;
