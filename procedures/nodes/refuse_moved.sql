create or replace function ringlog.refuse_moved() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  -- for this SQLSTATE the gateway reads its catalogue again, and calls the procedure where the table is now
  raise exception 'table % has moved to another server, nothing was written', tg_argv[0]
    using errcode = 'RL006', hint = 'Send it again.';
end
$$;
comment on function ringlog.refuse_moved is
$$Trigger of a ring and a log that have moved to another server: no row may be added to the old copy.$$;
