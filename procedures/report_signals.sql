create or replace function ringlog.report_signals(table_name text, states text)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
#variable_conflict use_column
declare
  wrong text;
  changed integer[];
  changes jsonb[];
  begins timestamptz[];
  settled integer[];
begin
  perform ringlog.demand_writer(report_signals.table_name);
  insert into ringlog.signal_state as kept (number, connected, since, trouble, dropped, policy)
  select state.number, state.connected, state.since, state.trouble, state.dropped, state.policy
  from json_to_recordset(report_signals.states::json) as state(
    number integer, connected boolean, since timestamptz, trouble text, dropped bigint, policy text
  )
  join ringlog.sample_signal as known using (number)
  where known.table_name = report_signals.table_name
  on conflict on constraint signal_state_pkey do update
  set connected = excluded.connected, since = excluded.since, trouble = excluded.trouble,
    dropped = kept.dropped + excluded.dropped, policy = excluded.policy;
  if not exists (select from jsonb_array_elements(report_signals.states::jsonb) as state where state ? 'told') then
    return 0;
  end if;
  select told.key || ' (' || told.value || ')' into wrong
  from json_to_recordset(report_signals.states::json) as state(told jsonb)
  cross join lateral jsonb_each(state.told) as told
  where not case
    when told.key in ('unit', 'description') then jsonb_typeof(told.value) = 'string'
    when told.key in ('limit_low', 'limit_high', 'alarm_low', 'alarm_high', 'decimals') then
      jsonb_typeof(told.value) in ('number', 'null')
    when told.key = 'states' then told.value = 'null' or ringlog.names_numbers((told.value #>> '{}')::jsonb)
    else false
  end
  limit 1;
  if found then
    raise exception 'report_signals: % is nothing that a source tells', wrong using errcode = 'invalid_parameter_value';
  end if;
  -- beside writers of other tables, and not beside changes of signals
  lock table ringlog.sample_signal in row exclusive mode;
  perform from ringlog.sample_signal as known
  where known.table_name = report_signals.table_name and known.number in (
    select state.number from json_to_recordset(report_signals.states::json) as state(number integer, told jsonb)
    where state.told is not null
  )
  order by known.number
  for update;
  -- a property that a source tells for the first time holds for earlier times too, another value from told_at on
  select array_agg(known.number), array_agg(other.changes), array_agg(case when other.changes is not null then
    least(state.told_at, clock_timestamp()) end)
  into changed, changes, begins
  from json_to_recordset(report_signals.states::json) as state(number integer, told jsonb, told_at timestamptz)
  join ringlog.sample_signal as known using (number)
  cross join lateral (
    select jsonb_object_agg(told.key, told.value) as changes
    from jsonb_each(state.told) as told
    where known.told::jsonb -> told.key <> told.value
  ) as other
  where known.table_name = report_signals.table_name and not known.told::jsonb @> state.told;
  update ringlog.sample_signal as known
  set told = (known.told::jsonb || state.told)::text
  from json_to_recordset(report_signals.states::json) as state(number integer, told jsonb)
  where known.number = state.number and known.number = any(changed);
  settled := ringlog.settle_signals(changed, begins);
  perform ringlog.note_signal_change(known.table_name, known.signal, 'source', changes::text)
  from unnest(changed, changes) as anew (number, changes)
  join ringlog.sample_signal as known using (number)
  where changes is not null and known.number = any(settled);
  return 0;
end
$$;

comment on function ringlog.report_signals(text, text) is
$$Stores what a writer knows of signals of a table of samples: a JSON array of objects with number, connected, since
when, trouble (null: none), the number of samples dropped since the last report, and policy (null: none); and, where the
source has told something, told, an object with some of unit, description, limit_low, limit_high, alarm_low, alarm_high,
states and decimals, and told_at. What the facility file or an archivist has set stays. Error: the caller may not write
the table (42501), a source tells nothing of the kind (22023).$$;

revoke all on function ringlog.report_signals(text, text) from public;
grant execute on function ringlog.report_signals(text, text) to daq_writer, daq_table_writer;
