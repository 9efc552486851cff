create or replace function ringlog.release_writer(table_name text, spool text)
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  update ringlog.writer as held
  set released = now(), state = 'ended'
  where held.table_name = release_writer.table_name and held.spool = release_writer.spool;
  select 0
$$;

comment on function ringlog.release_writer(text, text) is
$$For writers of versions before 2026-11-23: ends the claim of this spool, if it has it, whichever epoch it is. See
release_claim.$$;

revoke all on function ringlog.release_writer(text, text) from public;
grant execute on function ringlog.release_writer(text, text) to daq_writer;
