create or replace function ringlog.get_captured(capture integer, signal text)
returns table ("time" timestamptz, seconds double precision, value double precision)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  captured record;
begin
  if not exists (select from ringlog.capture as each where each.number = capture) then
    raise exception 'get_captured: there is no capture %', capture using errcode = 'undefined_object';
  end if;
  select * into captured from ringlog.captured_signals(capture) as each where each.signal = signal;
  if not found then
    raise exception 'get_captured: capture % has no signal ''%''', capture, signal using errcode = 'undefined_object';
  end if;
  if not ringlog.reads_captured(captured.table_name) then
    raise exception 'get_captured: permission denied for table %', captured.table_name
      using errcode = 'insufficient_privilege';
  end if;
  perform ringlog.demand_number('get_captured', signal, captured.type, each, each)
  from (values ('select … from capture.' || captured.table_name)) as hint (each);
  return query execute format(
    'select each."time", extract(epoch from each."time" - $2)::double precision, each.%I%s::double precision'
    ' from capture.%I as each where each.capture = $1%s order by each."time", each.%I',
    case when captured.is_of_samples then 'value' else captured.column_name end,
    case captured.type when 'bit' then '::integer' end,
    captured.table_name,
    case when captured.is_of_samples then ' and each.number = ' || captured.column_name::integer end,
    case when captured.is_of_samples then 'nanoseconds' else 'seq_no' end
  ) using capture, captured."time";
end
$$;
comment on function ringlog.get_captured is
$$The values of a signal in a capture, oldest first; seconds are counted from the event. A null value is a row without a
reading; a bit is 0 or 1. Other signals are read by select from capture.<table>. Errors: no such capture, or it has no
such signal (42704); a varchar signal or a waveform (42804); the caller may not read the table (42501).$$;
grant execute on function ringlog.get_captured to daq_reader, daq_table_reader;
