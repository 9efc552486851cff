create or replace function ringlog.release_claim(table_name text, spool text, epoch bigint) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(release_claim.table_name);
  update ringlog.writer as held
  set released = now(), state = 'ended'
  where held.table_name = ringlog.table_now(release_claim.table_name) and held.spool = release_claim.spool
    and held.epoch = release_claim.epoch;
  select 0
$$;
comment on function ringlog.release_claim is
$$Ends a claim, if it is the table's latest: the next writer can claim the table without take_over. A release that comes
late, when the same spool has claimed the table again, does nothing. Error: the caller may not write the table
(42501).$$;
grant execute on function ringlog.release_claim to daq_writer, daq_table_writer;
