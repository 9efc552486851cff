create or replace function ringlog.describe_signal(name text, at timestamptz default now()) returns table (
  signal text, table_name text, column_name text, type text, unit text, description text, limit_low double precision,
  limit_high double precision, alarm_low double precision, alarm_high double precision, states text, held boolean,
  decimals smallint, valid_from timestamptz, valid_to timestamptz
)
language sql stable parallel safe
as $$
  select
    known.signal, known.table_name, known.column_name, known.type, known.unit, known.description, known.limit_low,
    known.limit_high, known.alarm_low, known.alarm_high, known.states, known.held, known.decimals,
    known.valid_from, known.valid_to
  from ringlog.signal as known
  where known.signal = describe_signal.name
    and (pg_has_role('daq_reader', 'usage') or known.table_name in (select ringlog.readable_tables()))
  -- times before the first entry get the first one
  order by known.valid_from <= describe_signal.at desc,
    case when known.valid_from <= describe_signal.at then known.valid_from end desc,
    known.valid_from
  limit 1
$$;
comment on function ringlog.describe_signal is
$$A signal as of a time: its table, column, type, unit, description, limits, wider limits, names of whole numbers
(states) as a JSON object, whether values hold, digits behind the point, and from when to when this was valid. For a
time before the signal was known these are its first ones. No row for a signal that never existed or that the caller
may not read.$$;
grant execute on function ringlog.describe_signal to daq_reader, daq_table_reader;
