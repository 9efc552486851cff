create or replace function ringlog.waveform_columns(procedure_name text)
returns table (column_name text, type text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select signal.column_name, signal.type
  from ringlog.signal
  where signal.valid_to is null
    and signal.type like '%[]'
    and signal.type not like 'varchar%'
    and lower(procedure_name) in (
      'get_' || signal.table_name, 'get_' || signal.table_name || '_at', 'get_' || signal.table_name || '_range'
    )
$$;

comment on function ringlog.waveform_columns(text) is
$$The columns of a table's reading procedure that are waveforms of numbers, and their types: the types of the points in
its packed binary.$$;

revoke all on function ringlog.waveform_columns(text) from public;
grant execute on function ringlog.waveform_columns(text) to daq_reader, daq_table_reader;
