create or replace function {procedure}(
  signal text,
  "time" timestamptz,
  value {type},
  severity smallint default 0,
  status smallint default 0,
  nanoseconds smallint default 0
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
  return {claimed}(signal, "time", value, severity, status, nanoseconds, null);
end
$$;
comment on function {procedure} is
$$Stores a sample of a signal of the table: its time, value (null: no reading), EPICS's alarm severity and status, and
the nanoseconds of the time below a microsecond. The same sample may be sent any number of times and is stored once.
One that is further ahead of the server's clock than the table's clock_drift, or of a paused signal, is not stored: a
message and ringlog.event report it. Errors, which write nothing: no such signal in this table (42704), time null
(23502) or infinite (22008), nanoseconds outside 0 to 999 (22023), another sample of this signal and time (23505).$$;
grant execute on function {procedure} to daq_writer;
