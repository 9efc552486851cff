create or replace function ringlog.mark_history(mark integer) returns table (
  version integer, "time" timestamptz, until timestamptz, text text, signals text[], withdrawn boolean, login text,
  program text, made timestamptz
)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select each.version, each."time", each.until, each.text, each.signals, each.withdrawn, each.login, each.program, each.made
  from ringlog.mark as each
  where each.number = mark_history.mark
  order by each.version
$$;
comment on function ringlog.mark_history is $$Every version of a mark, the oldest first: who wrote it, and when.$$;
grant execute on function ringlog.mark_history to daq_reader, daq_table_reader;
