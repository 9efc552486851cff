create or replace function ringlog.add_signal(
  of_table text, signal text, unit text default '', description text default '',
  limit_low double precision default null, limit_high double precision default null, held boolean default false,
  address text default '', deadband text default '', policy text default ''
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  table_name constant text := of_table;
  kind text;
  existing record;
  number integer;
  own jsonb;
  is_back boolean;
begin
  if ringlog.node_of_table(table_name) is not null then
    raise exception 'add_signal: table % is on node %', table_name, ringlog.node_of_table(table_name)
      using errcode = 'object_not_in_prerequisite_state', hint = 'ringlog signal add adds signals there.';
  end if;
  select known.type into kind from ringlog.sample_table as known where known.table_name = table_name;
  if not found then
    raise exception 'add_signal: there is no table of samples ''%''', table_name using errcode = 'undefined_object';
  end if;
  if signal is null or signal = '' or signal <> trim(signal) or signal ~ '[[:cntrl:]]' or length(signal) > 1000 then
    raise exception 'add_signal: a signal is one line of text without blanks around it, up to 1000 characters'
      using errcode = 'invalid_parameter_value';
  end if;
  if length(unit) > 64 or unit ~ '[[:cntrl:]]' then
    raise exception 'add_signal: a unit is one line of text, up to 64 characters' using errcode = 'invalid_parameter_value';
  end if;
  if limit_low >= limit_high or (limit_low is null) <> (limit_high is null) then
    raise exception 'add_signal: limits are low and high, in this order' using errcode = 'invalid_parameter_value';
  end if;
  lock table ringlog.sample_signal in share row exclusive mode;
  select known.table_name, known.valid_to into existing
  from (
    select known.signal, known.table_name, known.valid_to, known.valid_from from ringlog.signal as known
    union all
    select known.signal, known.table_name, known.valid_to, known.valid_from from ringlog.signal_elsewhere as known
  ) as known
  where known.signal = signal and coalesce(known.valid_to, 'infinity') = 'infinity'
  limit 1;
  if found then
    raise exception 'add_signal: signal ''%'' is there already, in table %', signal, existing.table_name
      using errcode = 'duplicate_object';
  end if;
  if deadband <> '' and deadband not in ('ADEL', 'MDEL') and deadband !~ {deadband} then
    raise exception 'add_signal: a deadband is a number, a part as 0.5 %%, ADEL or MDEL, not ''%''', deadband
      using errcode = 'invalid_parameter_value';
  end if;
  own := jsonb_strip_nulls(jsonb_build_object(
    'unit', nullif(unit, ''), 'description', nullif(description, ''), 'limit_low', limit_low, 'limit_high', limit_high,
    'held', nullif(held, false)
  ));
  update ringlog.sample_signal as known
  set own = own::text, state = 'active', address = coalesce(address, ''), deadband = coalesce(deadband, ''), policy = coalesce(policy, '')
  where known.table_name = table_name and known.signal = signal
  returning known.number into number;
  is_back := found;
  if not is_back then
    insert into ringlog.sample_signal (table_name, signal, address, deadband, policy, own)
    values (table_name, signal, coalesce(address, ''), coalesce(deadband, ''), coalesce(policy, ''), own)
    returning sample_signal.number into number;
  end if;
  insert into ringlog.signal (
    signal, table_name, column_name, type, unit, description, limit_low, limit_high, held, valid_from
  )
  values (
    signal, table_name, number, kind, coalesce(unit, ''), coalesce(description, ''), limit_low, limit_high,
    coalesce(held, false), clock_timestamp()
  );
  if is_back then
    -- with the properties that its source had sent
    perform ringlog.settle_signals(array[number], null);
  end if;
  perform ringlog.note_signal_change(table_name, signal, 'add');
  return number;
end
$$;
comment on function ringlog.add_signal is
$$Adds a signal to a table of samples while it runs, or takes a retired one up again, and returns its number, which
put_<table>_batch takes. Errors: no such table of samples (42704), the signal is there (42710), an invalid name or
invalid limits (22023). address is its name at the source, if that differs; deadband and policy are as in the
facility file.$$;
grant execute on function ringlog.add_signal to signal_archivist;
