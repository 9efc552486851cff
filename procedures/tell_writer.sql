create or replace function ringlog.tell_writer(
  table_name text,
  spool text,
  state text,
  trouble text default null,
  produced bigint default null,
  acknowledged bigint default null,
  waiting bigint default null,
  oldest timestamptz default null,
  late bigint default null,
  refused bigint default null,
  repeated bigint default null,
  reconnected bigint default null,
  latency double precision default null
)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  update ringlog.writer as held
  set reported = now(), state = tell_writer.state, trouble = tell_writer.trouble,
    produced = tell_writer.produced, acknowledged = tell_writer.acknowledged, waiting = tell_writer.waiting,
    oldest = tell_writer.oldest, late = tell_writer.late, refused = tell_writer.refused,
    repeated = tell_writer.repeated, reconnected = tell_writer.reconnected, latency = tell_writer.latency
  where held.table_name = tell_writer.table_name and held.spool = tell_writer.spool;
  select 0
$$;

comment on function ringlog.tell_writer is
$$Stores a writer's state and counts in ringlog.writer; those of a writer that has lost the table are ignored.$$;

revoke all on function ringlog.tell_writer from public;
grant execute on function ringlog.tell_writer to daq_writer;
