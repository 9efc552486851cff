create or replace function ringlog.report_writer(
  table_name text, spool text, state text, trouble text default null, produced bigint default null,
  acknowledged bigint default null, waiting bigint default null, oldest timestamptz default null,
  late bigint default null, refused bigint default null, repeated bigint default null,
  reconnected bigint default null, latency double precision default null
) returns integer
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select ringlog.demand_writer(report_writer.table_name);
  update ringlog.writer as held
  set reported = now(), state = report_writer.state,
    troubled = case
      when report_writer.trouble is not distinct from held.trouble then held.troubled
      when report_writer.trouble is not null then now()
    end,
    trouble = report_writer.trouble,
    produced = report_writer.produced, acknowledged = report_writer.acknowledged, waiting = report_writer.waiting,
    oldest = report_writer.oldest, late = report_writer.late, refused = report_writer.refused,
    repeated = report_writer.repeated, reconnected = report_writer.reconnected, latency = report_writer.latency
  where held.table_name = ringlog.table_now(report_writer.table_name) and held.spool = report_writer.spool;
  select 0
$$;
comment on function ringlog.report_writer is
$$Stores a writer's state and counts in ringlog.writer; those of a writer that has lost the table are ignored.
Error: the caller may not write the table (42501).$$;
grant execute on function ringlog.report_writer to daq_writer, daq_table_writer;
