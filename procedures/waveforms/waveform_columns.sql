create or replace function ringlog.waveform_columns(procedure_name text) returns table (column_name text, type text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select distinct case when known.is_of_samples then 'value' else signal.column_name end, signal.type
  from ringlog.signal
  join ringlog.every_table as known on known.table_name = signal.table_name
  where signal.valid_to is null
    and signal.type like '%[]'
    and signal.type not like 'varchar%'
    and lower(procedure_name) in (
      'get_' || signal.table_name, 'get_' || signal.table_name || '_at', 'get_' || signal.table_name || '_range'
    )
$$;
comment on function ringlog.waveform_columns is
$$The columns of a table's reading procedure that are waveforms of numbers, and their types: the types of the points in
its packed binary.$$;
grant execute on function ringlog.waveform_columns to daq_reader, daq_table_reader;
