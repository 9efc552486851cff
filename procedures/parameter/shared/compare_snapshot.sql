create or replace function ringlog.compare_snapshot(
  name text, other text default null, of_table text default null
) returns table (
  table_name text, row_key text, change_kind text, column_name text, value_before text, value_after text
)
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  from_time timestamptz := ringlog.snapshot_time('compare_snapshot', name);
  to_time timestamptz := case
    when other is null then 'infinity' else ringlog.snapshot_time('compare_snapshot', other)
  end;
  found_table record;
begin
  for found_table in
    select
      columns.table_name as name,
      string_agg(format('d.%I', columns.column_name), ', ' order by columns.place) as keys
    from ringlog.parameter_column as columns
    where columns.is_key
      and (compare_snapshot.of_table is null or columns.table_name = compare_snapshot.of_table)
    group by columns.table_name
    order by columns.table_name
  loop
    return query execute format(
      'select %L, concat_ws('', '', %s), d.change_kind, d.column_name, d.value_before, d.value_after '
      'from ringlog.%I($1, $2) as d',
      found_table.name, found_table.keys, 'diff_' || found_table.name
    ) using from_time, to_time;
  end loop;
end
$$;
comment on function ringlog.compare_snapshot is
$$The differences between a snapshot and another one, or now: a line for each value of each row of each table, or of
this table only. Error: no such snapshot (P0002).$$;
grant execute on function ringlog.compare_snapshot to daq_reader, parameter_writer;
