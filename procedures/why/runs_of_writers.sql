create or replace function ringlog.runs_of_writers(of_table text)
returns table (name text, since timestamptz, until timestamptz, released boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select run.name, run.since, run.until, run.released
  from ringlog.writer_run as run
  where run.table_name = runs_of_writers.of_table
  union all
  select held.name, held.since,
    coalesce(
      held.released,
      case when coalesce(held.reported, held.since) < now() - interval '2 minutes' then coalesce(held.reported, held.since) end,
      'infinity'
    ),
    held.released is not null
  from ringlog.writer as held
  where held.table_name = runs_of_writers.of_table
$$;
comment on function ringlog.runs_of_writers is
$$From when to when writers had a table's claim: until its release, or the last report of one that no longer reports;
infinity: it reports.$$;
grant execute on function ringlog.runs_of_writers to daq_reader, daq_table_reader;
