create or replace function ringlog.manifest_changed() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name = 'history' then
    perform ringlog.list_archived(cold.table_name)
    from (select distinct table_name from ringlog.cold_week order by 1) as cold;
  elsif tg_op = 'UPDATE' then
    perform ringlog.list_archived(cold.table_name)
    from (
      select table_name from (
        (select table_name, begins, ends, file, rows, recalled_until from before except select table_name, begins, ends, file, rows, recalled_until from now)
        union all
        (select table_name, begins, ends, file, rows, recalled_until from now except select table_name, begins, ends, file, rows, recalled_until from before)
      ) as other
      group by 1
      order by 1
    ) as cold;
  elsif tg_op = 'INSERT' then
    perform ringlog.list_archived(cold.table_name)
    from (select distinct table_name from now order by 1) as cold;
  else
    perform ringlog.list_archived(cold.table_name)
    from (select distinct table_name from before order by 1) as cold;
  end if;
  return null;
end
$$;
comment on function ringlog.manifest_changed is
$$Trigger of the manifest and of the archive's folder: see list_archived.$$;
