create or replace function ringlog.report_signals(table_name text, states text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  numbers integer[];
  properties jsonb[];
  moments timestamptz[];
  wrong text;
  changed integer[];
  changes jsonb[];
  begins timestamptz[];
  settled integer[];
begin
  perform ringlog.demand_writer(report_signals.table_name);
  with state as materialized (
    select given.*, known.signal
    from json_to_recordset(report_signals.states::json) as given(
      number integer, connected boolean, since timestamptz, trouble text, dropped bigint, policy text, reported jsonb,
      reported_at timestamptz
    )
    join ringlog.sample_signal as known using (number)
    where known.table_name = report_signals.table_name
  ), stored as (
    insert into ringlog.signal_state as kept (number, connected, since, trouble, dropped, policy)
    select state.number, state.connected, state.since, state.trouble, state.dropped, state.policy
    from state
    on conflict on constraint signal_state_pkey do update
    set connected = excluded.connected, since = excluded.since, trouble = excluded.trouble,
      dropped = kept.dropped + excluded.dropped, policy = excluded.policy
  ), judged as (
    select
      state.number, state.reported_at,
      jsonb_object_agg(reported.key, reported.value) filter (where reported.fits) as properties,
      string_agg(format('%s: %s (%s)', state.signal, reported.key, reported.value), ', ') filter (where not reported.fits) as wrong
    from state
    cross join lateral (
      select each.key, each.value, case
        when each.key = 'unit' then
          jsonb_typeof(each.value) = 'string' and length(each.value #>> '{}') <= 64 and each.value #>> '{}' !~ '[[:cntrl:]]'
        when each.key = 'description' then jsonb_typeof(each.value) = 'string'
        when each.key in ('limit_low', 'limit_high', 'alarm_low', 'alarm_high', 'decimals') then
          jsonb_typeof(each.value) in ('number', 'null')
        when each.key = 'states' then each.value = 'null' or ringlog.names_numbers(each.value #>> '{}')
        else false
      end as fits
      from jsonb_each(case jsonb_typeof(state.reported) when 'object' then state.reported else jsonb_build_object('reported', state.reported) end)
        as each
      where state.reported is not null
    ) as reported
    group by state.number, state.reported_at
  )
  select
    array_agg(judged.number) filter (where judged.properties is not null),
    array_agg(judged.properties) filter (where judged.properties is not null),
    array_agg(judged.reported_at) filter (where judged.properties is not null),
    'ignored properties from sources: ' || string_agg(judged.wrong, ', ')
  into numbers, properties, moments, wrong
  from judged;
  if wrong is not null then
    raise notice 'report_signals: %', wrong;
    insert into ringlog.event as stored_event (table_name, spool, number, "time", until, kind, message)
    values (
      report_signals.table_name, 'report_signals ' || report_signals.table_name,
      extract(epoch from date_trunc('hour', now()))::bigint, now(), now(), 'unfit',
      left(wrong, 1000)
    )
    on conflict on constraint event_pkey do update set until = excluded.until, message = excluded.message;
  end if;
  if numbers is null then
    return 0;
  end if;
  -- concurrently with writers of other tables, but not with changes of signals
  lock table ringlog.sample_signal in row exclusive mode;
  perform from ringlog.sample_signal as known where known.number = any(numbers) order by known.number for update;
  -- a property that a source sends for the first time also applies to earlier times, a changed one from reported_at on
  select array_agg(known.number), array_agg(other.changes), array_agg(case when other.changes is not null then
    least(state.reported_at, clock_timestamp()) end)
  into changed, changes, begins
  from unnest(numbers, properties, moments) as state (number, reported, reported_at)
  join ringlog.sample_signal as known using (number)
  cross join lateral (
    select jsonb_object_agg(reported.key, reported.value) as changes
    from jsonb_each(state.reported) as reported
    where known.reported::jsonb -> reported.key <> reported.value
  ) as other
  where not known.reported::jsonb @> state.reported;
  update ringlog.sample_signal as known
  set reported = (known.reported::jsonb || state.reported)::text
  from unnest(numbers, properties) as state (number, reported)
  where known.number = state.number and known.number = any(changed);
  settled := ringlog.settle_signals(changed, begins);
  perform ringlog.note_signal_change(known.table_name, known.signal, 'source', changes::text)
  from unnest(changed, changes) as anew (number, changes)
  join ringlog.sample_signal as known using (number)
  where changes is not null and known.number = any(settled);
  return 0;
end
$$;
comment on function ringlog.report_signals is
$$Stores what a writer knows of signals of a table of samples: a JSON array of objects with number, connected, since
when, trouble (null: none), the number of samples dropped since the last report, and policy (null: none); and, where
the source has sent properties, reported, an object with some of unit, description, limit_low, limit_high, alarm_low,
alarm_high, states and decimals, and reported_at. What the facility file or an archivist has set stays. A property of
another name or kind is ignored; a message and an event of kind unfit name it. Error: the caller may not write the
table (42501).$$;
grant execute on function ringlog.report_signals to daq_writer, daq_table_writer;
