create or replace function ringlog.causes_of_events(
  of_table text, of_column text, names text[], is_of_samples boolean, step interval, from_time timestamptz,
  to_time timestamptz
) returns table (cause text, since timestamptz, until timestamptz, at tstzrange, rows bigint, evidence text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with named as materialized (
    -- the events of the signal, of each kind also the last one before the time: it may last
    select event."time", event.kind, event.message
    from ringlog.event
    cross join lateral (
      select max(earlier."time") as last
      from ringlog.event as earlier
      where earlier.table_name = of_table and earlier.kind = event.kind and earlier."time" <= from_time
        and (earlier.message = any(names) or exists (
          select from unnest(names) as name where starts_with(earlier.message, name || ': ')
        ))
    ) as before
    where event.table_name = of_table and event."time" < to_time and event.until is null
      and event.kind in ('disconnected', 'connected', 'clock', 'unfit')
      and (event."time" >= from_time or event."time" = before.last)
      and (event.message = any(names) or exists (
        select from unnest(names) as name where starts_with(event.message, name || ': ')
      ))
  ), lost as (
    select each.*, least(
      lead(each."time", 1, 'infinity') over (order by each."time"),
      -- a new process reports the loss again
      (select min(run.until) from ringlog.runs_of_writers(of_table) as run where run.since <= each."time" and run.until > each."time")
    ) as until
    from named as each
    where each.kind in ('disconnected', 'connected')
  ), lasting as (
    -- samples are not stored until the first reading that is, and a row's reading is NULL
    select each.*, coalesce(
      ringlog.first_reading(of_table, of_column, is_of_samples, each."time" + interval '1 microsecond', to_time), 'infinity'
    ) as until
    from named as each
    where each.kind = 'clock' and (is_of_samples or each.message like '%: it was never processed%')
      or each.kind = 'unfit' and is_of_samples
  )
  select 'source lost', lost."time", lost.until, tstzrange(lost."time" - step / 20, lost.until + step / 20), null::bigint,
    format('event disconnected: %s', lost.message)
  from lost
  where lost.kind = 'disconnected'
  union all
  select case when lasting.kind = 'unfit' then 'unfit' when lasting.message like '%: it was never processed%' then 'never processed'
      else 'clock' end,
    lasting."time", lasting.until, tstzrange(lasting."time", lasting.until), null,
    format('event %s: %s', lasting.kind, lasting.message)
  from lasting
  union all
  select 'unfit', named."time", named."time", tstzrange(named."time", named."time" + step), 1,
    format('event unfit: %s', named.message)
  from named
  where named.kind = 'unfit' and not is_of_samples
  union all
  -- events of all rows of the table
  select
    case event.kind
      when 'gap' then case event.message when 'no writer was running' then 'writer stopped' else 'no rows from source' end
      when 'unread' then 'source unreadable'
      else event.kind
    end,
    event."time", coalesce(event.until, event."time"),
    case
      when event.kind in ('gap', 'clock') then tstzrange(event."time", event.until)
      when event.spool like 'put\_%' then tstzrange(event."time" - step, event.until + greatest(step, interval '10 s'))
      else tstzrange(event."time", coalesce(event.until, event."time") + step)
    end,
    event.rows, format('event %s: %s', event.kind, event.message)
  from ringlog.event
  where event.table_name = of_table and event."time" < to_time and coalesce(event.until, event."time") >= from_time - step
    and case
      when event.kind = 'refused' then
        not is_of_samples or event.spool like 'put\_%' or starts_with(event.message, format('signal %s at ', of_column))
      when event.kind = 'clock' then event.until is not null and not is_of_samples
      else event.kind in ('gap', 'unread', 'thinned', 'damaged')
    end
  union all
  select 'clock', dropped.since, dropped.until, tstzrange(dropped.since - step, dropped.until + step), dropped.rows,
    'put_' || of_table || '_batch dropped samples of a time too far ahead of the server''s clock'
  from ringlog.dropped_sample as dropped
  where is_of_samples and dropped.kind = 'clock' and dropped.number::text = of_column and dropped.since < to_time
    and dropped.until >= from_time
$$;
comment on function ringlog.causes_of_events is
$$Events that explain missing readings of a signal, with the time `at` of the readings that they explain. `names` are those of
the signal in messages, `step` the time from reading to reading.$$;
grant execute on function ringlog.causes_of_events to daq_reader, daq_table_reader;
