create or replace function ringlog.tell_ledger(
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
set search_path = pg_catalog, pg_temp
as $$
  select ringlog.report_ledger(
    table_name, spool, hour, produced, acknowledged, thinned, refused, late, repeated
  )
$$;

comment on function ringlog.tell_ledger is
$$The former name of report_ledger, which older writers call.$$;

revoke all on function ringlog.tell_ledger from public;
grant execute on function ringlog.tell_ledger to daq_writer;
