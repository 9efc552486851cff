create or replace function ringlog.list_views(pattern text default '%')
returns table (name text, description text, owner text, state text, signals text[], made timestamptz)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select each.name, each.description, each.owner, each.state, each.signals, each.made
  from ringlog.saved_view as each
  where each.name like list_views.pattern
  order by lower(each.name), each.name
$$;
comment on function ringlog.list_views is
$$The kept states of the page whose name is like the pattern, by name; made is when the owner last saved it.$$;
grant execute on function ringlog.list_views to daq_reader, daq_table_reader;
