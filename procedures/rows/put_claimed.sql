create or replace function {procedure}(r {ring}, _epoch bigint) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
  -- a take-over waits for this transaction, and this one sees an earlier take-over
  lock table only {log} in row exclusive mode;
  if not exists (
    select from ringlog.writer as holder
    where holder.table_name = {table} and holder.epoch = _epoch and holder.released is null
  ) then
    raise exception '%: another writer has taken the table over', {name} using errcode = 'RL001';
  end if;
  return {put}(r);
end
$$;
comment on function {procedure} is
$$Stores a row as put does, for the writer that has the table's claim: see claim_writer, which returns the epoch.
Errors: those of put, and another writer has taken the table over (RL001); they write nothing.$$;
grant execute on function {procedure} to daq_writer;
