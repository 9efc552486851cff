create or replace function ringlog.report_ledger(
  table_name text, spool text, hour timestamptz, produced bigint, acknowledged bigint, thinned bigint, refused bigint,
  late bigint, repeated bigint
) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(report_ledger.table_name);
  insert into ringlog.ledger as kept
    (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)
  values (
    ringlog.table_now(table_name), hour, spool, greatest(produced, acknowledged + thinned + refused),
    acknowledged, thinned, refused, late, repeated
  )
  on conflict on constraint ledger_pkey do update
  -- A damaged spool counts anew, and its lost rows may be entered in another hour: rows whose fate is known were produced
  set produced = greatest(
      kept.produced, excluded.produced,
      greatest(kept.acknowledged, excluded.acknowledged) + greatest(kept.thinned, excluded.thinned)
        + greatest(kept.refused, excluded.refused)
    ),
    acknowledged = greatest(kept.acknowledged, excluded.acknowledged),
    thinned = greatest(kept.thinned, excluded.thinned),
    refused = greatest(kept.refused, excluded.refused),
    late = greatest(kept.late, excluded.late),
    repeated = greatest(kept.repeated, excluded.repeated);
  select 0
$$;
comment on function ringlog.report_ledger is
$$Stores a spool's counts of an hour (rows belong to the hour of their time). They only grow, so sending them again, or
in another order, has no effect; at least as many rows were produced as were acknowledged, thinned and refused. Error: the caller may not write the table (42501).$$;
grant execute on function ringlog.report_ledger to daq_writer, daq_table_writer;
