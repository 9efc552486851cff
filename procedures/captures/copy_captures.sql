create or replace function ringlog.copy_captures() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  next record;
  message text;
begin
  lock table ringlog.one_capture in exclusive mode;
  select number into next from ringlog.capture where expires <= now() order by number limit 1;
  if found then
    perform ringlog.delete_captured(next.number);
    return true;
  end if;
  select each.table_name into next
  from ringlog.captured_table as each
  where each.due <= now()
  order by each.due
  limit 1;
  if not found then
    return false;
  end if;
  begin
    perform ringlog.copy_captured(next.table_name);
  exception when others then
    -- shown by list_captures; other tables must not wait for this one
    get stacked diagnostics message = message_text;
    update ringlog.captured_table as each
    set
      trouble = message,
      due = case when sqlstate <> '42P01' and now() < event.late_until then now() + interval '10 seconds' end
    from ringlog.capture as event
    where event.number = each.capture and each.table_name = next.table_name and each.due <= now();
  end;
  return true;
end
$$;
comment on function ringlog.copy_captures is
$$Housekeeping of captures: deletes an expired one, or copies the rows of the table that is due first. Returns false when
there is nothing to do.$$;
