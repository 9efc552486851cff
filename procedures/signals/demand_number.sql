create or replace function ringlog.demand_number(
  procedure text, signal text, type text, of_waveforms text, of_rows text
) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  if type like '%[]' then
    raise exception '%: signal ''%'' is a waveform (%)', procedure, signal, type
      using errcode = 'datatype_mismatch', hint = format('Call %s.', of_waveforms);
  end if;
  if type like 'varchar%' or type in ('text', 'datetime') then
    raise exception '%: signal ''%'' is % (%), not a number', procedure, signal,
      case type when 'datetime' then 'a time' else 'text' end, type
      using errcode = 'datatype_mismatch', hint = format('Call %s.', of_rows);
  end if;
end
$$;
comment on function ringlog.demand_number is
$$Raises the error of a procedure that reads numbers (42804) when a signal is of another type. The hint names the
procedure that reads waveforms, or the one that reads all types.$$;
grant execute on function ringlog.demand_number to daq_reader, daq_table_reader;
