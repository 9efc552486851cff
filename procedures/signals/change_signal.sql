create or replace function ringlog.change_signal(signal text, changes text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal('change_signal', signal);
  given constant jsonb := changes;
  of_source constant text[] := array['address', 'deadband', 'policy'];
  known_keys constant text[] := of_source || array['unit', 'description', 'limits', 'alarm_limits', 'states', 'held'];
  stored ringlog.sample_signal;
  own jsonb;
  before ringlog.signal;
  wanted ringlog.signal;
  wrong text;
begin
  if jsonb_typeof(given) is distinct from 'object' then
    raise exception 'change_signal: the changes are a JSON object, not %', changes using errcode = 'invalid_parameter_value';
  end if;
  select key || ' (' || value || ')' into wrong
  from jsonb_each(given)
  where not case
    when value = 'null' then key = any(known_keys)
    when key = 'unit' then jsonb_typeof(value) = 'string' and length(given ->> key) <= 64 and given ->> key !~ '[[:cntrl:]]'
    when key in ('description', 'address', 'deadband', 'policy') then jsonb_typeof(value) = 'string'
    when key = 'held' then jsonb_typeof(value) = 'boolean'
    when key in ('limits', 'alarm_limits') then
      jsonb_typeof(value) = 'array' and jsonb_array_length(value) = 2
      and jsonb_typeof(value -> 0) = 'number' and jsonb_typeof(value -> 1) = 'number'
    when key = 'states' then ringlog.names_numbers(value::text)
    else false
  end
  limit 1;
  if found then
    raise exception 'change_signal: % is no change: %', wrong,
      'unit, description, address, deadband and policy are texts, a unit one line of up to 64 characters, limits and alarm_limits [low, high], states names of whole numbers, held is true or false; null removes'
      using errcode = 'invalid_parameter_value';
  end if;
  -- one after the other, with add_signal and report_signals
  lock table ringlog.sample_signal in share row exclusive mode;
  select * into stored from ringlog.sample_signal as known where known.number = number;
  own := stored.own;
  select * into before from ringlog.signal as known
  where known.table_name = stored.table_name and known.column_name = number::text and known.valid_to is null;
  if stored.listed and given <> '{{}}' then
    raise exception 'change_signal: signal ''%'' is in the facility file: change it there', signal
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  own := own - array(select jsonb_object_keys(given));
  if given ? 'limits' then
    own := own - array['limit_low', 'limit_high'];
  end if;
  if given ? 'alarm_limits' then
    own := own - array['alarm_low', 'alarm_high'];
  end if;
  own := own || jsonb_strip_nulls(jsonb_build_object(
    'unit', nullif(given ->> 'unit', ''),
    'description', nullif(given ->> 'description', ''),
    'limit_low', given -> 'limits' -> 0,
    'limit_high', given -> 'limits' -> 1,
    'alarm_low', given -> 'alarm_limits' -> 0,
    'alarm_high', given -> 'alarm_limits' -> 1,
    'states', nullif(given ->> 'states', '{{}}'),
    'held', given -> 'held'
  ));
  wanted := jsonb_populate_record(null::ringlog.signal, own);
  if wanted.limit_low >= wanted.limit_high or wanted.alarm_low >= wanted.alarm_high
    or wanted.alarm_low > wanted.limit_low or wanted.alarm_high < wanted.limit_high
  then
    raise exception 'change_signal: limits are low and high, in this order, and alarm_limits are around them'
      using errcode = 'invalid_parameter_value';
  end if;
  if wanted.states is not null and before.type not in ('int', 'smallint', 'bigint', 'bit') then
    raise exception 'change_signal: states are names of whole numbers, and signal ''%'' is %', signal, before.type
      using errcode = 'invalid_parameter_value';
  end if;
  if given ? 'deadband' then
    stored.deadband := coalesce(given ->> 'deadband', '');
  end if;
  if given ? 'address' then
    stored.address := coalesce(given ->> 'address', '');
  end if;
  if given ? 'policy' then
    stored.policy := coalesce(given ->> 'policy', '');
  end if;
  if stored.deadband <> '' and stored.deadband not in ('ADEL', 'MDEL') and stored.deadband !~ {deadband} then
    raise exception 'change_signal: a deadband is a number, a part as 0.5 %%, ADEL or MDEL, not ''%''', stored.deadband
      using errcode = 'invalid_parameter_value';
  end if;
  update ringlog.sample_signal as known
  set deadband = stored.deadband, address = stored.address, policy = stored.policy, own = own::text
  where known.number = number and (known.deadband, known.address, known.policy, known.own::jsonb)
    is distinct from (stored.deadband, stored.address, stored.policy, own);
  if found then
    perform ringlog.settle_signals(array[number], array[clock_timestamp()]);
    perform ringlog.note_signal_change(stored.table_name, signal, 'change', changes);
  end if;
  return 0;
end
$$;
comment on function ringlog.change_signal is
$$Changes a signal of a table of samples from now on: a JSON object with some of unit, description, limits,
alarm_limits, states, held, address, deadband and policy, as in the facility file; null removes one. ringlog.signal
keeps the former ones. Errors: no such signal now (42704), a signal that the facility file lists (55000), an unknown
key or a wrong value (22023).$$;
grant execute on function ringlog.change_signal to signal_archivist;
