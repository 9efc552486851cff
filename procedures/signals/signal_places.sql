create or replace function ringlog.signal_places(names text[]) returns table (
  signal text, table_name text, column_name text, type text, unit text, begins timestamptz, ends timestamptz
)
language sql stable
as $$
  select
    location.signal,
    location.table_name,
    location.column_name,
    location.type,
    location.unit,
    -- a column's first signal also has earlier rows, such as imported ones, except those of the time when it was in
    -- another column
    case when exists (
      select from ringlog.signal as earlier
      where earlier.table_name = location.table_name
        and earlier.column_name = location.column_name
        and earlier.valid_from < location.valid_from
    ) then location.valid_from else coalesce((
      select max(former.valid_to) from ringlog.signal as former
      where former.signal = location.signal and former.valid_from < location.valid_from
    ), '-infinity') end,
    case
      -- a sample belongs to the signal with its number, also where that was retired for a time
      when exists (select from ringlog.sample_table where sample_table.table_name = location.table_name) then coalesce((
        select min(later.valid_from) from ringlog.signal as later
        where later.signal = location.signal and later.valid_from > location.valid_from
      ), 'infinity')
      else coalesce(location.valid_to, 'infinity')
    end
  from ringlog.signal as location
  where location.signal = any(signal_places.names)
  order by location.signal, location.valid_from
$$;
comment on function ringlog.signal_places is
$$The tables and columns that have stored signals, oldest first: a signal's rows are those of the column from `begins`
(inclusive) to `ends` (exclusive), which may be infinite. At each moment a signal is in one place at most. An unknown
name has no row.$$;
grant execute on function ringlog.signal_places to daq_reader, daq_table_reader;
