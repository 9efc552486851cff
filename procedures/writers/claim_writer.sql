create or replace function ringlog.claim_writer(
  table_name text, spool text, writer text, take_over boolean default false, out epoch bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  holder record;
begin
  table_name := ringlog.table_now(table_name);
  if not exists (select from ringlog.every_table as known where known.table_name = table_name) then
    raise exception 'claim_writer: there is no table ''%''', table_name using errcode = 'undefined_object';
  end if;
  perform ringlog.demand_writer(table_name);
  -- waits until calls under an older claim are committed; later calls see the new claim
  execute format('lock table only weeks.%I in share row exclusive mode', table_name);
  select held.spool, held.name, held.since into holder
  from ringlog.writer as held
  where held.table_name = table_name and held.released is null;
  if found and holder.spool <> spool and take_over is not true then
    raise exception 'table % is written by % since %', table_name, holder.name, holder.since
      using errcode = 'RL002', hint = 'Stop that writer, or take the table over (ringlog load --take-over).';
  end if;
  insert into ringlog.writer_run (table_name, since, name, until, released)
  select held.table_name, held.since, held.name, coalesce(held.released, held.reported, held.since),
    held.released is not null
  from ringlog.writer as held
  where held.table_name = table_name
  -- two claims of one transaction
  on conflict on constraint writer_run_pkey do nothing;
  insert into ringlog.writer as held (table_name, epoch, spool, name, since)
  values (table_name, 1, spool, writer, now())
  on conflict on constraint writer_pkey do update
  set epoch = held.epoch + 1, spool = excluded.spool, name = excluded.name, since = excluded.since,
    released = null, reported = null
  returning held.epoch into epoch;
end
$$;
comment on function ringlog.claim_writer is
$$Makes the caller the table's only writer and returns the epoch of the claim, which put_<table>_claimed requires. The
same spool may claim again at any time; another one only after release_claim, or with take_over. Once this has
returned, nothing is stored under an older claim. put_<table> requires no claim. Errors: no such table (42704), the caller may not write it (42501), another
writer has the claim (RL002).$$;
grant execute on function ringlog.claim_writer to daq_writer, daq_table_writer;
