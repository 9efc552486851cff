create or replace function ringlog.delete_captured(number integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  name text;
begin
  for name in delete from ringlog.captured_table as each where each.capture = number returning each.table_name loop
    if exists (select from ringlog.captured_table as each where each.table_name = name) then
      execute format('delete from capture.%I where capture = $1', name) using number;
    else
      execute format('drop table capture.%I', name);
    end if;
  end loop;
  delete from ringlog.capture as each where each.number = number;
end
$$;
comment on function ringlog.delete_captured is $$Deletes a capture and its rows.$$;
