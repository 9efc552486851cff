create or replace function ringlog.copy_captured(number integer, table_name text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  here constant text := ringlog.table_now(table_name);
  event ringlog.capture;
  known ringlog.captured_table;
  columns text;
  sources text;
  start timestamptz;
  oldest timestamptz;
  newest timestamptz;
  logs_every boolean := true;
  copied bigint;
begin
  select * into strict event from ringlog.capture where capture.number = number;
  select * into strict known
  from ringlog.captured_table as each where each.capture = number and each.table_name = table_name for update;
  if here <> table_name then
    raise exception 'table % is now named %: capture % ends with the rows before', table_name, here, number
      using errcode = 'undefined_table';
  end if;
  columns := ringlog.store_captured(table_name, known.is_of_samples);
  start := event.begins;
  -- rows out of order are added by the passes after the end
  if known.copied is not null and now() < event.ends then
    start := greatest(start, known.copied - interval '2 seconds');
  end if;
  if known.is_of_samples then
    sources := format(
      'select %s from log.%I as each where each.block_ends >= $2 and each.block_begins < $3'
      ' and each."time" >= $2 and each."time" < $3',
      columns, table_name
    );
  else
    select each.log_nth = 1 and each.log_period is null into strict logs_every
    from ringlog.logged_table as each where each.table_name = table_name;
    execute format(
      'select case when count(*) = count("time") then min("time") end,'
      ' max("time") filter (where "time" <= now()) from online.%I',
      table_name
    ) into oldest, newest;
    if not logs_every and oldest > greatest(known.copied, event.begins) then
      known.lost := concat_ws(
        '; ', known.lost,
        format('rows from %s to %s', greatest(known.copied, event.begins), least(oldest, event.ends))
      );
    end if;
    if newest >= event.ends then
      -- later rows replace those of the event, which are copied now
      newest := 'infinity';
    end if;
    sources := format(
      'select %1$s from online.%2$I where "time" >= $2 and "time" < $3'
      ' union all select %1$s from weeks.%2$I where "time" >= $2 and "time" < $3',
      columns, table_name
    );
  end if;
  execute format(
    'insert into capture.%I (capture, %s) select $1, * from (%s) as found on conflict do nothing',
    table_name, columns, sources
  ) using number, start, event.ends;
  get diagnostics copied = row_count;
  update ringlog.captured_table as each
  set
    rows = each.rows + copied,
    copied = greatest(known.copied, newest),
    lost = known.lost,
    trouble = null,
    due = case
      when now() < event.ends + interval '2 seconds' then now() + interval '1 second'
      -- a spool may fill the ring at once
      when now() < event.late_until and not logs_every and coalesce(greatest(known.copied, newest) < event.ends, true)
        then now() + interval '1 second'
      when now() < event.late_until then least(now() + interval '1 minute', event.late_until)
    end
  where each.capture = number and each.table_name = table_name;
end
$$;

comment on function ringlog.copy_captured is
$$Copies the rows of a capture that its table has now, of the ring and of the log, and says when to look again.$$;
