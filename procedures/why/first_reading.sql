create or replace function ringlog.first_reading(
  table_name text, column_name text, is_of_samples boolean, from_time timestamptz, to_time timestamptz
) returns timestamptz
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  found timestamptz;
begin
  if is_of_samples then
    execute format(
      'select min(stored."time") from ringlog.%I(null, $1, $2, null, $3) as stored where stored.value is not null',
      'get_' || table_name
    ) into found using from_time, to_time, column_name::integer;
  else
    execute format(
      'select logged."time" from log.%I as logged where logged."time" >= $1 and logged."time" < $2 and logged.%I is not null'
      ' order by logged."time" limit 1',
      table_name, column_name
    ) into found using from_time, to_time;
  end if;
  return found;
end
$$;
comment on function ringlog.first_reading is
$$The time of the first reading of a column, or of a signal of a table of samples by its number, from from_time (inclusive) to
to_time (exclusive); null: there is none.$$;
grant execute on function ringlog.first_reading to daq_reader, daq_table_reader;
