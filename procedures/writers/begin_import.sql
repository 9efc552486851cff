create or replace function ringlog.begin_import(
  table_name text, file text, digest text, out rows bigint, out base integer, out ended timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set client_min_messages = 'warning'
as $$
#variable_conflict use_variable
begin
  if not exists (
    select from ringlog.logged_table as known where known.table_name = table_name and not known.retired
  ) then
    raise exception 'begin_import: there is no table ''%''', table_name using errcode = 'undefined_object';
  end if;
  perform ringlog.demand_writer(table_name);
  -- the copy of the moving table would replace rows imported here meanwhile
  if exists (select from ringlog.moved_part as moved where moved.table_name = table_name) then
    raise exception 'begin_import: table ''%'' is moving to this server, nothing was imported', table_name
      using errcode = 'object_not_in_prerequisite_state', hint = 'Wait for the end of ringlog node move.';
  end if;
  execute format('select latest.seq_no from ringlog.%I() as latest', 'last_' || table_name) into base;
  insert into ringlog.imported_file as known (table_name, file, digest, base, rows, began)
  values (table_name, file, digest, coalesce(base, 0), 0, now())
  on conflict on constraint imported_file_pkey do update
  set digest = excluded.digest,
    rows = case when known.digest = excluded.digest then known.rows else 0 end,
    began = case when known.digest = excluded.digest then known.began else now() end,
    ended = case when known.digest = excluded.digest then known.ended end
  returning known.rows, known.base, known.ended into rows, base, ended;
  -- the table must not be the caller's: the caller's defaults and triggers would run as the owner here
  execute format(
    'create temporary table if not exists pg_temp.%I (like online.%I) on commit delete rows', table_name, table_name
  );
  execute format('grant insert on pg_temp.%I to public', table_name);
end
$$;
comment on function ringlog.begin_import is
$$Begins or continues the import of a file of old rows: makes the session's table pg_temp.<table>, into which the next
rows are copied before each call of import_<table>, in one transaction. Returns how many rows of the file have been
imported, the place in the ring after which its first row is stored when the file has no seq_no, and the time of the
last import. A file of the same name with another digest begins anew. Errors: no such table (42704); one that is moving
to this server (55000); the caller may not write it (42501).$$;
grant execute on function ringlog.begin_import to daq_writer, daq_table_writer;
