create or replace function ringlog.record_late_row() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_argv[0] = 'signal' then
    insert into ringlog.late_row (partition, "time", seq_no) values (tg_table_name, new."time", new.signal);
  else
    insert into ringlog.late_row (partition, "time", seq_no) values (tg_table_name, new."time", new.seq_no);
  end if;
  return null;
end
$$;
comment on function ringlog.record_late_row is
$$Trigger of log partitions that are being copied: records the key of each row that arrives meanwhile. With
the argument 'signal' they are blocks of samples.$$;
