create or replace function ringlog.insert_into_log() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('insert into weeks.%I select ($1).*', tg_table_name) using new;
  return new;
end
$$;
comment on function ringlog.insert_into_log is
$$Trigger of a log with archived weeks: stores the rows that are inserted into log.<table>.$$;
