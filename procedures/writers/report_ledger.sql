create or replace function ringlog.report_ledger(
  table_name text,
  spool text,
  hour timestamptz,
  produced bigint,
  acknowledged bigint,
  thinned bigint,
  refused bigint,
  late bigint,
  repeated bigint
)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(report_ledger.table_name);
  insert into ringlog.ledger as kept
    (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)
  values (ringlog.table_now(table_name), hour, spool, produced, acknowledged, thinned, refused, late, repeated)
  on conflict on constraint ledger_pkey do update
  set produced = greatest(kept.produced, excluded.produced),
    acknowledged = greatest(kept.acknowledged, excluded.acknowledged),
    thinned = greatest(kept.thinned, excluded.thinned),
    refused = greatest(kept.refused, excluded.refused),
    late = greatest(kept.late, excluded.late),
    repeated = greatest(kept.repeated, excluded.repeated);
  select 0
$$;

comment on function ringlog.report_ledger is
$$Stores a spool's counts of an hour (rows belong to the hour of their time). They only grow, so sending them again, or
in another order, has no effect. Error: the caller may not write the table (42501).$$;

revoke all on function ringlog.report_ledger from public;
grant execute on function ringlog.report_ledger to daq_writer, daq_table_writer;
