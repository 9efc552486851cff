create or replace function ringlog.copy_captured(table_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  -- a table may have been renamed since
  source constant text := ringlog.table_now(table_name);
  -- captures that are due until the next look are copied now: one scan for all
  soon constant timestamptz := now() + interval '1 second';
  is_of_samples constant boolean := (select each.is_of_samples from ringlog.every_table as each where each.table_name = source);
  columns constant text := ringlog.store_captured(table_name, is_of_samples);
  logs_every boolean := true;
  captures integer[];
  starts timestamptz[];
  ends timestamptz[];
  oldest timestamptz;
  newest timestamptz;
begin
  -- rows out of order are added by the passes after the end
  select
    array_agg(each.capture), array_agg(event.ends),
    array_agg(case when now() < event.ends then greatest(event.begins, each.copied - interval '2 seconds') else event.begins end)
  into captures, ends, starts
  from ringlog.captured_table as each join ringlog.capture as event on event.number = each.capture
  where each.table_name = table_name and each.due <= soon;
  if not is_of_samples then
    select each.log_nth = 1 and each.log_period is null into strict logs_every
    from ringlog.logged_table as each where each.table_name = source;
  end if;
  -- one statement for all captures: the oldest and the newest row are those of the ring that it reads
  execute format(
    'with active as materialized (select * from unnest($1, $2, $3) as each (capture, start, ends)), '
    || case when is_of_samples then '' else
      'ring as materialized (select %1$s from online.%2$I where "time" >= (select min(start) from active)'
      ' and "time" < (select max(ends) from active)), '
    end
    || 'made as (insert into capture.%3$I (capture, %1$s)'
    || case when is_of_samples then '' else
      ' select active.capture, ring.* from active join ring on ring."time" >= active.start and ring."time" < active.ends union all'
    end
    || ' select active.capture, logged.* from active cross join lateral ('
    '   select %1$s from %4$I.%2$I where "time" >= active.start and "time" < active.ends'
    || case when is_of_samples then ' and block_ends >= active.start and block_begins < active.ends' else '' end
    || ' offset 0) as logged on conflict do nothing returning capture), '
    'counted as (update ringlog.captured_table as each set rows = each.rows + found.rows'
    ' from (select made.capture, count(*) as rows from made group by 1) as found'
    ' where each.capture = found.capture and each.table_name = $4) '
    || case when is_of_samples then 'select null, null' else
      'select case when not exists (select from online.%2$I where "time" is null)'
      ' then (select min("time") from online.%2$I) end, (select max("time") from online.%2$I where "time" <= now())'
    end,
    columns, source, table_name, case when is_of_samples then 'log' else 'weeks' end
  ) into oldest, newest using captures, starts, ends, table_name;
  update ringlog.captured_table as each
  set
    -- later rows replace those of the event, which are copied now
    copied = greatest(each.copied, case when newest >= event.ends then 'infinity' else newest end),
    lost = case
      when not logs_every and oldest > greatest(each.copied, event.begins) then concat_ws(
        '; ', each.lost,
        format('rows from %s to %s', greatest(each.copied, event.begins), least(oldest, event.ends))
      )
      else each.lost
    end,
    trouble = null,
    due = case
      when now() < event.ends + interval '2 seconds' then soon
      -- a spool may fill the ring at once
      when now() < event.late_until and not logs_every and coalesce(greatest(each.copied, newest) < event.ends, true) then soon
      when now() < event.late_until then least(now() + interval '1 minute', event.late_until)
    end
  from ringlog.capture as event
  where each.capture = any(captures) and each.table_name = table_name and event.number = each.capture;
end
$$;
comment on function ringlog.copy_captured is
$$Copies the rows that a table has now, of the ring and of the log, for its captures that are due, and says when to look
again.$$;
