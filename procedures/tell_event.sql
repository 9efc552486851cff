create or replace function ringlog.tell_event(
  table_name text,
  spool text,
  number bigint,
  "time" timestamptz,
  kind text,
  words text,
  until timestamptz default null,
  rows bigint default null
)
returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select ringlog.report_events(
    table_name,
    spool,
    json_build_array(
      json_build_object('number', number, 'time', "time", 'kind', kind, 'words', words, 'until', until, 'rows', rows)
    )::text
  )
$$;

comment on function ringlog.tell_event is
$$Reports one event, as older writers do.$$;

revoke all on function ringlog.tell_event from public;
grant execute on function ringlog.tell_event to daq_writer;
