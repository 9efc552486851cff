create or replace function ringlog.newest_archived(table_name text, number integer, at timestamptz)
returns table ("time" bigint, value text, severity smallint, status smallint)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
  if ringlog.reads_archive(table_name, '-infinity', at + interval '1 microsecond') then
    return query execute format(
      'select ringlog.nanoseconds(each."time") + each.nanoseconds, each.value::text, each.severity, each.status '
      'from archive.%I as each where each.number = $1 and each."time" <= $2 '
      'order by each."time" desc, each.nanoseconds desc limit 1',
      table_name
    ) using number, at;
  end if;
end
$$;
comment on function ringlog.newest_archived is
$$The newest sample of a signal of a table of samples in its archived weeks that is not later than a time, from the files.
Error: PostgreSQL does not reach the archive server (RL003).$$;
grant execute on function ringlog.newest_archived to daq_reader, daq_table_reader;
