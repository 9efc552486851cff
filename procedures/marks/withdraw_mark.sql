create or replace function ringlog.withdraw_mark(mark integer, reason text default null) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- by this setting the call is no part of a writer's transaction in the gateway's group commit
set lock_timeout = '10s'
as $$
begin
  perform ringlog.record_mark('withdraw_mark', withdraw_mark.mark, null, null, nullif(withdraw_mark.reason, ''), null, true);
  return 0;
end
$$;
comment on function ringlog.withdraw_mark is
$$Withdraws a mark: list_marks no longer has it, mark_history has it with the reason as its last text. Error: no such mark
(42704).$$;
grant execute on function ringlog.withdraw_mark to event_recorder;
