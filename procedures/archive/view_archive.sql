create or replace function ringlog.view_archive(table_name text, archived text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  view constant text := format('log.%I', table_name);
  of_weeks text;
  of_archive text;
  privilege record;
begin
  if exists (
    select from ringlog.every_table as known where known.table_name = table_name and known.is_of_samples
  ) then
    perform ringlog.view_samples(table_name, archived);
    perform pg_notify('ringlog_catalogue', '');
    return;
  end if;
  select
    string_agg(quote_ident(attname), ', ' order by attnum),
    string_agg(format('%1$I::%2$s as %1$I', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
  into of_weeks, of_archive
  from pg_attribute
  where attrelid = format('weeks.%I', table_name)::regclass and attnum > 0 and not attisdropped;
  execute format(
    'create or replace view %s as select %s from weeks.%I union all select %s from archive_files.%I',
    view, of_weeks, table_name, of_archive, archived
  );
  execute format(
    'create or replace trigger ringlog_insert instead of insert on %s'
    ' for each row execute function ringlog.insert_into_log()',
    view
  );
  -- the script that changes a column's type has dropped the view; nobody reads a table that is still moving to this server
  if has_table_privilege('daq_reader', format('weeks.%I', table_name), 'select') then
    execute format('grant select on %s to daq_reader', view);
  end if;
  perform pg_notify('ringlog_catalogue', '');
  -- FOR UPDATE, which would lock no row of a UNION, needs it
  for privilege in
    select distinct case grantee when 0 then 'public' else grantee::regrole::text end as of
    from pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
    where pg_class.oid = view::regclass and privilege_type = 'UPDATE'
  loop
    execute format('revoke update on %s from %s', view, privilege.of);
  end loop;
end
$$;
comment on function ringlog.view_archive is
$$Adds the rows of this table of archived weeks, in schema archive_files, to log.<table>. Nobody can update such a view,
nor lock its rows.$$;
