create or replace function {procedure}(from_time timestamptz, to_time timestamptz default 'infinity')
returns table ({key_arguments}, change_kind text, column_name text, value_before text, value_after text)
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
begin
  perform ringlog.await_parameter_changes({this}.from_time);
  perform ringlog.await_parameter_changes({this}.to_time);
  return query
    select
      {key_either},
      case when earlier.version is null then 'added' when later.version is null then 'removed' else 'changed' end,
      cell.column_name,
      cell.value_before,
      cell.value_after
    from (select stored.* from {stored} as stored where stored.valid @> {this}.from_time) as earlier
    full join (select stored.* from {stored} as stored where stored.valid @> {this}.to_time) as later
      on {key_joined}
    cross join lateral (values
      {cells}
    ) as cell (column_name, value_before, value_after)
    where earlier.version is null or later.version is null or cell.value_before is distinct from cell.value_after
    order by {key_either}, cell.column_name;
end
$$;
comment on function {procedure} is
$$The differences between two times (to_time omitted: now): a line for each value of each row, which was added, removed
or changed, with the value at from_time and the one at to_time as text.$$;
grant execute on function {procedure} to daq_reader, parameter_writer;
