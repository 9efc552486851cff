create or replace function ringlog.reads_archive(table_name text, from_time timestamptz, to_time timestamptz)
returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
-- as demand_online: planning would take longer than the query
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
begin
  if to_regclass(format('archive_files.%I', table_name)) is null then
    return not ringlog.demand_online(table_name, from_time, to_time);
  end if;
  return exists (
    select from ringlog.cold_week as week
    where week.table_name = table_name and week.recalled_until is null and week.rows > 0
      and week.begins < to_time and week.ends > from_time
  );
end
$$;
comment on function ringlog.reads_archive is
$$Whether log.<table> reads the archive for its rows from from_time (inclusive) to to_time (exclusive). Error: it should,
and PostgreSQL does not reach the archive server (see demand_online).$$;
grant execute on function ringlog.reads_archive to daq_reader, daq_table_reader;
