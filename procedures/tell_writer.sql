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
set search_path = pg_catalog, pg_temp
as $$
  select ringlog.report_writer(
    table_name, spool, state, trouble, produced, acknowledged, waiting, oldest, late, refused, repeated,
    reconnected, latency
  )
$$;

comment on function ringlog.tell_writer is
$$The former name of report_writer, which older writers call.$$;

revoke all on function ringlog.tell_writer from public;
grant execute on function ringlog.tell_writer to daq_writer;
