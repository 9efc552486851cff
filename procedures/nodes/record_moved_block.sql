create or replace function ringlog.record_moved_block() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  insert into ringlog.moved_row (table_name, "time", seq_no) values (tg_argv[0], new."time", new.signal);
  return null;
end
$$;
comment on function ringlog.record_moved_block is
$$Trigger of a log of samples that moves to another server: records the key of each block that arrives meanwhile, its
signal as seq_no.$$;
