create or replace function ringlog.merge_samples(table_name text) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  until constant timestamptz := date_trunc('hour', now() - interval '10 minutes', 'UTC');
  since timestamptz := (select known.merged_until from ringlog.sample_table as known where known.table_name = table_name);
  start timestamptz;
  one record;
  merged integer := 0;
begin
  -- one at a time
  perform from ringlog.sample_table as known where known.table_name = table_name for update skip locked;
  if not found then
    return null;
  end if;
  -- a block that moves to another server is known by its time
  execute format('lock table only weeks.%I in row exclusive mode', table_name);
  if exists (select from ringlog.moved_part as part where part.table_name = table_name) or exists (
    select from pg_trigger
    where tgname = 'ringlog_record_moved_row' and tgrelid = to_regclass(format('weeks.%I', table_name))
  ) then
    return null;
  end if;
  delete from ringlog.sample_mark as mark
  where mark.ctid = (
    select each.ctid from ringlog.sample_mark as each where each.table_name = table_name order by each.hour limit 1
  )
  returning mark.hour into start;
  if start is null then
    execute format(
      'select date_trunc(''hour'', min("time"), ''UTC'') from weeks.%I where "time" >= $1 and "time" < $2', table_name
    ) into start using coalesce(since, '-infinity'), until;
    update ringlog.sample_table as known set merged_until = coalesce(start + interval '1 hour', until)
    where known.table_name = table_name
      and known.merged_until is distinct from coalesce(start + interval '1 hour', until);
    if start is null then
      return null;
    end if;
  end if;
  -- a waveform is a block of its own; the archive knows blocks by their signal and time
  if exists (
    select from ringlog.sample_table as known where known.table_name = table_name and known.type like '%[]'
  ) or exists (
    select from ringlog.cold_week as cold
    where cold.table_name = table_name and cold.recalled_until is null and cold.begins <= start and cold.ends > start
  ) or exists (
    select from pg_trigger
    where tgname = 'record_late_row'
      and tgrelid = to_regclass(format('log.%I', table_name || to_char(start at time zone 'UTC', '"_"IYYY"w"IW')))
  ) then
    return 0;
  end if;
  for one in execute format(
    'select signal from weeks.%I where "time" >= $1 and "time" < $2 group by signal having count(*) > 1'
    '  and count(*) > ceil(sum(n) / 4096.0)', table_name
  ) using start, start + interval '1 hour'
  loop
    execute format(
      $text$
        with taken as (
          delete from weeks.%1$I where signal = $1 and "time" >= $2 and "time" < $3
          returning times, samples, severities, statuses
        ), each as (
          select each.*, (row_number() over (order by each."time") - 1) / 4096 as block
          from taken, unnest(times, samples, severities, statuses) as each ("time", value, severity, status)
        )
        insert into weeks.%1$I (signal, n, "time", begins, times, samples, severities, statuses)
        select
          $1, count(*), ringlog.moment(max("time")), ringlog.moment(min("time")),
          array_agg("time" order by "time"), array_agg(value order by "time"),
          case when bool_or(severity <> 0) then array_agg(coalesce(severity, 0::smallint) order by "time") end,
          case when bool_or(status <> 0) then array_agg(coalesce(status, 0::smallint) order by "time") end
        from each
        group by block
      $text$,
      table_name
    ) using one.signal, start, start + interval '1 hour';
    merged := merged + 1;
  end loop;
  return merged;
end
$$;
comment on function ringlog.merge_samples is
$$Merges the blocks of each signal of a table of samples, for the first hour that needs it and has been over for ten
minutes: an hour with late samples, or the first one that was never merged; not in a week that is archived. Returns the number of signals merged; null
when no hour needs it.$$;
