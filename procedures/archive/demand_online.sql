create or replace function ringlog.demand_online(
  table_name text, from_time timestamptz, to_time timestamptz
) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  cold record;
begin
  select count(*) as weeks, min(begins) as first, max(begins) as last into cold
  from ringlog.cold_week as week
  where week.table_name = table_name and week.recalled_until is null and week.rows > 0
    and week.begins < to_time and week.ends > from_time;
  if cold.weeks > 0 then
    raise exception '% weeks of table % are not in PostgreSQL but in the archive: % to %',
      cold.weeks, table_name, to_char(cold.first at time zone 'UTC', 'IYYY"w"IW'),
      to_char(cold.last at time zone 'UTC', 'IYYY"w"IW')
      using errcode = 'RL003', hint = format(
        'The administrator brings them back with: ringlog recall %s %s %s. HTTP and ringlog.history read them where they are.',
        table_name, to_char(cold.first at time zone 'UTC', 'YYYY-MM-DD'),
        to_char((cold.last + interval '7 days') at time zone 'UTC', 'YYYY-MM-DD')
      );
  end if;
  return true;
end
$$;
comment on function ringlog.demand_online is
$$True when all rows of a table's log from from_time (inclusive) to to_time (exclusive) are in PostgreSQL. Error: some
weeks are in the archive (RL003); the message lists them and the command that recalls them.$$;
grant execute on function ringlog.demand_online to daq_reader, daq_table_reader;
