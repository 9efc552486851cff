create or replace function ringlog.archived_files(table_name text) returns text
language sql stable set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO'
as $$
  select
    json_build_object(
      'folder', (select archive from ringlog.history),
      'files', coalesce(json_agg(json_build_array(file, begins, ends, rows, footer) order by begins), '[]')
    )::text
  from ringlog.cold_week as cold
  where cold.table_name = archived_files.table_name and recalled_until is null and rows > 0
$$;
comment on function ringlog.archived_files is
$$The list of the files with the archived weeks of a table, as JSON: file, begin, end, rows, SHA-256 of the footer.$$;
