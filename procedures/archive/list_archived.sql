create or replace function ringlog.list_archived(table_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO'
as $$
#variable_conflict use_variable
declare
  all_weeks constant text := format('archive_files.%I', table_name);
  files constant text := format('archive_files.%I', table_name || ' files');
  each text;
  there text;
  wanted text;
  list text;
  first timestamptz;
  last timestamptz;
begin
  if to_regclass(files) is null then
    return;
  end if;
  if exists (
    select from ringlog.cold_week as cold where cold.table_name = table_name and cold.rows > 0
  ) and not exists (
    select from pg_depend where refobjid = all_weeks::regclass and classid = 'pg_rewrite'::regclass
  ) then
    perform ringlog.view_archive(table_name, table_name);
  end if;
  -- waits for queries that have begun, which hold locks on their tables; later ones see the new list
  execute format('lock table only weeks.%I in access exclusive mode', table_name);
  list := table_name || case when exists (
      select from ringlog.every_table as known where known.table_name = table_name and known.is_of_samples
    ) then ' samples-' else ' ' end || encode(sha256(convert_to(ringlog.archived_files(table_name), 'utf8')), 'hex');
  select min(begins), max(ends)
  into first, last
  from ringlog.cold_week as cold
  where cold.table_name = table_name and recalled_until is null and rows > 0;
  foreach each in array array[files, format('archive_files.%I', table_name || ' alone')] loop
    execute format('alter foreign table %s options (set table_name %L)', each, list);
  end loop;
  if first is not null then
    wanted := format('FOR VALUES FROM (%L) TO (%L)', first, last);
  end if;
  select pg_get_expr(relpartbound, oid) into there from pg_class where oid = files::regclass;
  if there is distinct from wanted then
    if there is not null then
      execute format('alter table %s detach partition %s', all_weeks, files);
    end if;
    if wanted is not null then
      execute format('alter table %s attach partition %s %s', all_weeks, files, wanted);
    end if;
  end if;
end
$$;
comment on function ringlog.list_archived is
$$Writes the digest of the list of archived files into the definition of log.<table> and archive.<table>, so that a query
of any snapshot finds a week either in PostgreSQL or in its file. Their foreign table is a partition from the first archived
week to the last one, so that queries of other times leave it out. log.<table> has it from the first archived week on.$$;
