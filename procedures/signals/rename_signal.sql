create or replace function ringlog.rename_signal(signal text, new_name text) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  number constant integer := ringlog.demand_signal('rename_signal', signal);
  of_table constant text := (select known.table_name from ringlog.sample_signal as known where known.number = number);
begin
  if new_name is null or new_name = '' or new_name <> trim(new_name) or new_name ~ '[[:cntrl:]]' or length(new_name) > 1000 then
    raise exception 'rename_signal: a signal is one line of text without blanks around it, up to 1000 characters'
      using errcode = 'invalid_parameter_value';
  end if;
  if exists (select from ringlog.signal as known where known.signal = new_name)
    or exists (select from ringlog.signal_elsewhere as known where known.signal = new_name)
  then
    raise exception 'rename_signal: there is or was a signal ''%''', new_name using errcode = 'duplicate_object';
  end if;
  insert into ringlog.signal
  select (jsonb_populate_record(known, jsonb_build_object('signal', new_name))).*
  from ringlog.signal as known
  where known.signal = signal and known.table_name = of_table and known.column_name = number::text
    and coalesce(known.valid_to, now()) <> 'infinity';
  -- it is read by both names
  update ringlog.signal as known set valid_to = 'infinity' where known.signal = signal and known.valid_to is null;
  update ringlog.sample_signal as known set signal = new_name, address = coalesce(nullif(known.address, ''), signal)
  where known.number = number;
  perform ringlog.note_signal_change(of_table, signal, 'rename', new_name);
  return 0;
end
$$;
comment on function ringlog.rename_signal is
$$Gives a signal of a table of samples another name; it can be read and written by the former name too, which becomes
its address at the source if it has none. Errors: no such signal now (42704), the new name is or was that of a signal
(42710), or is invalid (22023).$$;
grant execute on function ringlog.rename_signal to signal_archivist;
