create or replace function ringlog.restore_snapshot(
  name text, comment text default null, of_table text default null, out changed_rows integer, out change bigint,
  out changed timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  caller constant text := (ringlog.caller()).login;
  moment timestamptz := ringlog.snapshot_time('restore_snapshot', name);
  found_table text;
  differs boolean;
  done record;
begin
  if restore_snapshot.of_table is not null and not exists (
    select from ringlog.parameter_table as known where known.table_name = restore_snapshot.of_table
  ) then
    raise exception 'restore_snapshot: there is no parameter table ''%''', restore_snapshot.of_table
      using errcode = 'no_data_found';
  end if;
  changed_rows := 0;
  perform ringlog.lock_parameters();
  for found_table in
    select known.table_name
    from ringlog.parameter_table as known
    where restore_snapshot.of_table is null or known.table_name = restore_snapshot.of_table
    order by known.table_name
  loop
    execute format('select exists (select from ringlog.%I($1))', 'diff_' || found_table) into differs using moment;
    continue when not differs;
    if not has_function_privilege(
      caller,
      (
        select procedure.oid
        from pg_proc as procedure
        where procedure.pronamespace = 'ringlog'::regnamespace and procedure.proname = 'revert_' || found_table
      ),
      'execute'
    ) then
      raise exception 'permission denied for parameter table %, which differs from snapshot ''%'': nothing was changed',
        found_table, restore_snapshot.name
        using errcode = 'insufficient_privilege';
    end if;
    execute format('select * from ringlog.%I($1, comment => $2)', 'revert_' || found_table)
    into done
    using moment, coalesce(restore_snapshot.comment, format('snapshot %s', restore_snapshot.name));
    changed_rows := changed_rows + done.changed_rows;
    change := coalesce(done.change, change);
    changed := coalesce(done.changed, changed);
  end loop;
end
$$;
comment on function ringlog.restore_snapshot is
$$Sets all parameter tables, or this one, to the state of a snapshot, as one change. Returns the number of changed rows,
and number and time of the change. Errors, which change nothing: no such snapshot or table (P0002), a table that differs
and that the caller may not change (42501), a value outside its current limits (23514).$$;
grant execute on function ringlog.restore_snapshot to parameter_writer;
