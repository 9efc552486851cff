create or replace function ringlog.demand_log(relation text, from_time timestamptz, to_time timestamptz) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  table_name constant text := (parse_ident(relation))[2];
  until timestamptz;
begin
  select week.ends into until
  from ringlog.cold_week as week
  where week.table_name = table_name and week.recalled_until is null and week.rows > 0
  order by week.begins desc
  limit 1;
  if from_time >= until or until is null then
    return true;
  end if;
  if from_time is not null or to_time < until then
    return ringlog.demand_online(table_name, coalesce(from_time, '-infinity'), coalesce(to_time, 'infinity'));
  end if;
  raise notice 'Weeks of % before % are in the archive: their rows are missing here. A lower bound of the time column '
    'excludes these weeks; ringlog recall, HTTP and ringlog.history read them.', relation, until;
  return true;
end
$$;
comment on function ringlog.demand_log is
$$True when all rows of a log ("log"."table") from from_time (inclusive) to to_time (exclusive) are in PostgreSQL; null: the
caller does not know the bound. Error: some of these weeks are in the archive (RL003). Where from_time is not known, rows
of the archive may be missing: a message says so.$$;
grant execute on function ringlog.demand_log to public;
