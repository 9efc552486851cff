create or replace function {procedure}(rows text, _epoch bigint) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  r {ring};
begin
  -- otherwise readings of a renamed column would be lost
  if exists (
    select from json_object_keys(rows::json -> 0) as key where key <> all ({names}::text[])
  ) then
    raise exception '%: the rows have a column that the table does not have', {name} using errcode = 'undefined_column';
  end if;
  for r in select * from json_populate_recordset(null::{ring}, rows::json) loop
    perform {claimed}(r, _epoch);
  end loop;
  return 0;
end
$$;
comment on function {procedure} is
$$Stores many rows as put_<table>_claimed stores one, in their order, all of them or none: for the rows that a writer
sends after an outage. `rows` is a JSON array of objects with seq_no, time and columns by their names; an omitted column
is null. Errors: those of put_<table>_claimed for any of the rows.$$;
grant execute on function {procedure} to daq_writer;
