create or replace function ringlog.causes_of_writers(of_table text, step interval)
returns table (cause text, since timestamptz, until timestamptz, at tstzrange, rows bigint, evidence text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select case when run.released then 'writer stopped' else 'writer silent' end, run.until, run.next,
    -- the first row of a writer comes a step after its claim at the latest
    tstzrange(run.until, run.next + step), null::bigint,
    format(case when run.released then 'writer %s gave the table up' else 'writer %s has not reported since' end, run.name)
  from (
    select each.*, lead(each.since, 1, 'infinity') over (order by each.since) as next
    from ringlog.runs_of_writers(of_table) as each
  ) as run
  where run.until < run.next
  union all
  select 'in a spool', held.oldest, held.released, tstzrange(held.oldest, held.released + step), held.waiting,
    format('writer %s reported at %s that rows wait in its spool %s', held.name, held.reported, held.spool)
  from ringlog.writer as held
  where held.table_name = of_table and held.waiting > 0 and held.oldest is not null
  union all
  select 'no call', call.called, null, tstzrange(call.called - step, null), null,
    format('put was called last by %s on %s (login %s)', call.program, call.host, call.login)
  from ringlog.table_callers() as call
  where call.table_name = of_table and call.called < now() - greatest(1.5 * step, interval '15 seconds')
    -- the last caller was no writer that has stopped since
    and not exists (
      select from ringlog.writer as held where held.table_name = of_table and coalesce(held.released >= call.called, true)
    )
$$;
comment on function ringlog.causes_of_writers is
$$Times without a writer of a table, rows that wait in a spool, and the time since the last call of its put, as causes of
missing readings; see causes_of_events.$$;
grant execute on function ringlog.causes_of_writers to daq_reader, daq_table_reader;
