create or replace function ringlog.record_moved_row() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  insert into ringlog.moved_row (table_name, "time", seq_no, chosen)
  select tg_argv[0], new."time", new.seq_no, exists (
    -- written by this transaction
    select from ringlog.arrival
    where arrival.table_name = tg_argv[0] and arrival.seq_no = new.seq_no and age(arrival.xmin) <= 0
  );
  return null;
end
$$;
comment on function ringlog.record_moved_row is
$$Trigger of a log that moves to another server: records the key of each row that arrives meanwhile, and
whether put chose its seq_no.$$;
