create or replace function ringlog.list_captures(pattern text default '%') returns table (
  capture integer, name text, "time" timestamptz, begins timestamptz, ends timestamptz, late_until timestamptz,
  expires timestamptz, note text, login text, program text, table_name text, is_of_samples boolean, rows bigint,
  state text, filtered text, lost text, trouble text
)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select
    event.number, event.name, event."time", event.begins, event.ends, event.late_until, event.expires, event.note,
    event.login, event.program, each.table_name, each.is_of_samples, each.rows,
    case
      when each.due is null then 'ended'
      when now() < event.ends + interval '2 seconds' then 'copying'
      else 'waiting for late rows'
    end,
    each.filtered, each.lost, each.trouble
  from ringlog.capture as event
  join ringlog.captured_table as each on each.capture = event.number
  where event.name like list_captures.pattern and ringlog.reads_captured(each.table_name)
  order by event.number, each.table_name
$$;
comment on function ringlog.list_captures is
$$The captures whose name is like the pattern, a row for each table that the caller may read. Rows are those copied until
now; filtered has the policies of samples at their source, lost what the ring may have lost, trouble the latest error.$$;
grant execute on function ringlog.list_captures to daq_reader, daq_table_reader;
