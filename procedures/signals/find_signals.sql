create or replace function ringlog.find_signals(pattern text default '%') returns table (
  signal text, table_name text, column_name text, type text, unit text, description text, limit_low double precision,
  limit_high double precision, alarm_low double precision, alarm_high double precision, states text, held boolean,
  decimals smallint
)
language sql stable parallel safe
as $$
  select
    found.signal,
    found.table_name,
    found.column_name,
    found.type,
    found.unit,
    found.description,
    found.limit_low,
    found.limit_high,
    found.alarm_low,
    found.alarm_high,
    found.states,
    found.held,
    found.decimals
  from (
    select
      known.signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
      states, held, decimals, valid_to
    from ringlog.signal as known
    union all
    select
      known.signal, table_name, column_name, type, unit, description, limit_low, limit_high, alarm_low, alarm_high,
      states, held, decimals, valid_to
    from ringlog.signal_elsewhere as known
  ) as found
  where found.valid_to is null and found.signal like find_signals.pattern
    and (pg_has_role('daq_reader', 'usage') or found.table_name in (select ringlog.readable_tables()))
  order by found.signal
$$;
comment on function ringlog.find_signals is
$$The current signals that the caller may read and whose name is like the pattern (% is any text, _ any character), by
name. alarm_low and alarm_high are the wider limits; states has names of whole numbers as a JSON object;
decimals are digits behind the point.$$;
grant execute on function ringlog.find_signals to daq_reader, daq_table_reader;
