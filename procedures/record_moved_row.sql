create or replace function ringlog.record_moved_row()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into ringlog.moved_row (table_name, "time", seq_no) values (tg_argv[0], new."time", new.seq_no);
  return null;
end
$$;

comment on function ringlog.record_moved_row() is
$$Trigger of a log that moves to another server: records the key of each row that arrives meanwhile.$$;

revoke all on function ringlog.record_moved_row() from public;
