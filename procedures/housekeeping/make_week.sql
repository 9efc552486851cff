create or replace function ringlog.make_week(table_name text, start timestamptz, now timestamptz default now())
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO'
set client_min_messages = 'warning' set lock_timeout = '2s'
as $$
#variable_conflict use_variable
declare
  finish constant timestamptz := start + interval '7 days';
  partition constant text := table_name || to_char(start, '"_"IYYY"w"IW');
  fallback constant text := table_name || '_default';
  is_of_samples constant boolean := (
    select known.is_of_samples from ringlog.every_table as known where known.table_name = table_name
  );
  silent text;
  moved bigint;
  later bigint;
begin
  if is_of_samples is null then
    raise exception 'make_week: there is no table ''%''', table_name using errcode = 'undefined_object';
  end if;
  perform ringlog.demand_writer(table_name);
  if now is distinct from pg_catalog.now() and not pg_has_role(
    case current_setting('role') when 'none' then session_user else current_setting('role') end, 'ringlog_owner', 'usage'
  ) then
    raise exception 'make_week: only ringlog_owner may give the present time' using errcode = 'insufficient_privilege';
  end if;
  if start is distinct from date_trunc('week', start) or start < '1970-01-05' or start > now + interval '5 weeks' then
    raise exception 'make_week: % is no Monday from 1970 on to the next five weeks', start using errcode = 'check_violation';
  end if;
  lock table ringlog.one_change in exclusive mode;
  -- later sessions would wait behind it
  perform set_config('lock_timeout', '60ms', true);
  if exists (
    select
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    cross join lateral regexp_match(
      pg_get_expr(child.relpartbound, 0), 'FROM \(''(.+)''\) TO \(''(.+)''\)'
    ) as bounds
    where inhparent = format('weeks.%I', table_name)::regclass
      and bounds[1]::timestamptz < finish and start < bounds[2]::timestamptz
  ) or exists (
    select from ringlog.cold_week as cold
    where cold.table_name = table_name and cold.recalled_until is null and cold.begins < finish and start < cold.ends
  ) or finish <= (
    select now - known.retention::interval
    from (
      select each.table_name, each.retention from ringlog.logged_table as each
      union all
      select each.table_name, each.retention from ringlog.sample_table as each
    ) as known
    where known.table_name = table_name
  ) then
    return null;
  end if;

  -- with this check the attachment does not read every row; for the options see PARTITION_OPTIONS of
  -- ringlog.schema.relations.partitions
  execute format(
    'create table log.%I (like weeks.%I including all, constraint week check ("time" >= %L and "time" < %L))'
    ' with (toast.autovacuum_vacuum_insert_threshold = -1)',
    partition, table_name, start, finish
  );
  execute format(
    'insert into log.%I select * from log.%I where "time" >= %L and "time" < %L', partition, fallback, start, finish
  );
  get diagnostics moved = row_count;
  -- An open transaction that has read the log blocks the attachment's locks. Try the lock of the default partition alone
  -- first, so that writers do not wait.
  begin
    execute format('lock table log.%I in access exclusive mode', fallback);
    raise exception using errcode = 'RL007';
  exception when sqlstate 'RL007' then
  end;
  -- Lock out readers and writers. A reader that has looked up the partitions and waits for the default one would miss
  -- the moved rows. A writer that waits to insert a row of this week into the default partition would be refused.
  execute format('lock table only weeks.%I in access exclusive mode', table_name);
  execute format('lock table log.%I in access exclusive mode', fallback);
  execute format(
    'insert into log.%1$I select * from log.%2$I as late where "time" >= %3$L and "time" < %4$L and not exists'
    ' (select from log.%1$I as there where there."time" = late."time" and %5$s)',
    partition, fallback, start, finish,
    case when is_of_samples then 'there.signal = late.signal and there.times = late.times'
      else 'there.seq_no = late.seq_no' end
  );
  get diagnostics later = row_count;
  execute format('delete from log.%I where "time" >= %L and "time" < %L', fallback, start, finish);
  if moved + later > 0 then
    perform ringlog.mark_summaries(table_name, format('log.%I', partition)::regclass, start, finish);
  end if;
  execute format(
    'alter table weeks.%I attach partition log.%I for values from (%L) to (%L)', table_name, partition, start, finish
  );
  execute format('alter table log.%I drop constraint week', partition);
  -- see ringlog.schema.relations.statistics
  select string_agg(format('alter column %I set statistics 0', attname), ', ') into silent
  from pg_attribute
  where attrelid = format('log.%I', partition)::regclass and attnum > 0 and not attisdropped
    and attname not in ('seq_no', 'time');
  if silent is not null then
    execute format('alter table log.%I %s', partition, silent);
  end if;
  return moved + later;
end
$$;
comment on function ringlog.make_week is
$$Makes the partition of a log for the week that begins at this time, a Monday 00:00 UTC, and moves its rows from the
default partition there. Returns their number; null when the partition exists, or the week is in the archive or past
retention. Errors: no such table (42704), the caller may not write it or give the present time
(42501), no such Monday (23514), the log is in use (55P03).$$;
grant execute on function ringlog.make_week to daq_writer, daq_table_writer;
