create or replace function ringlog.get_latest(name text) returns table ("time" timestamptz, value double precision)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  location record;
begin
  select signal.table_name, signal.column_name, signal.type, known.is_of_samples into location
  from ringlog.signal
  join ringlog.every_table as known on known.table_name = signal.table_name
  where signal.signal = name
    -- infinity: a name before the column was renamed
    and coalesce(signal.valid_to, 'infinity') = 'infinity';
  if not found then
    perform ringlog.demand_here(array[name]);
    raise exception 'get_latest: there is no signal ''%'' now', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  perform ringlog.demand_number(
    'get_latest', name, location.type, 'get_waveform', format('get_%s', location.table_name)
  );
  if location.is_of_samples then
    return query execute format(
      'select each."time", each.value%s::double precision from ringlog.%I(''infinity'', $1) as each',
      case location.type when 'bit' then '::integer' end,
      'get_' || location.table_name || '_at'
    ) using location.column_name::integer;
    return;
  end if;
  return query execute format(
    'select ring."time", ring.%I%s::double precision '
    'from online.%I as ring where ring."time" is not null '
    'order by ring."time" desc, ring.seq_no desc limit 1',
    location.column_name,
    case location.type when 'bit' then '::integer' end,
    location.table_name
  );
end
$$;
comment on function ringlog.get_latest is
$$Time and value of a signal in the latest row of its ring; no row when the ring was never written. A null value is a
row without a reading; a bit is 0 or 1; a bigint beyond 2^53 is rounded. Errors: no such current signal (42704), a
varchar signal or a waveform (42804).$$;
grant execute on function ringlog.get_latest to daq_reader, daq_table_reader;
