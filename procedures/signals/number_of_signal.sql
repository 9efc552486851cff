create or replace function ringlog.number_of_signal(table_name text, signal text) returns integer
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number integer := (
    select known.number from ringlog.sample_signal as known
    where known.table_name = table_name and known.signal = signal
    order by known.state = 'retired', known.number desc
    limit 1
  );
begin
  if number is not null then
    return number;
  end if;
  -- a name that it had before
  select known.column_name::integer into number
  from ringlog.signal as known
  where known.table_name = table_name and known.signal = signal and known.valid_to = 'infinity';
  if number is null then
    raise exception 'table % has no signal ''%''', table_name, signal
      using errcode = 'undefined_object', hint = 'find_signals lists them, and add_signal adds one.';
  end if;
  return number;
end
$$;
comment on function ringlog.number_of_signal is
$$The number of a signal of a table of samples, by its name or a former one; it never changes. Error: no such signal in
this table (42704).$$;
grant execute on function ringlog.number_of_signal to daq_reader, daq_table_reader, daq_writer, daq_table_writer;
