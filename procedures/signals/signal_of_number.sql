create or replace function ringlog.signal_of_number(number integer) returns text
language sql stable parallel safe
as $$ select known.signal from ringlog.sample_signal as known where known.number = signal_of_number.number $$;
comment on function ringlog.signal_of_number is $$The name that a signal of a table of samples has now.$$;
grant execute on function ringlog.signal_of_number to daq_reader, daq_table_reader, daq_writer, daq_table_writer;
