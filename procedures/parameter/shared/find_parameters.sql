create or replace function ringlog.find_parameters(pattern text default '%') returns table (
  table_name text, column_name text, is_key boolean, type text, unit text, description text,
  limit_low double precision, limit_high double precision
)
language sql stable parallel safe
as $$
  select
    found.table_name,
    found.column_name,
    found.is_key,
    found.type,
    found.unit,
    found.description,
    found.limit_low,
    found.limit_high
  from ringlog.parameter_column as found
  where found.table_name || '/' || found.column_name like find_parameters.pattern
  order by found.table_name, found.place
$$;
comment on function ringlog.find_parameters is
$$The columns of parameter tables whose table/column is like the pattern (% is any text, _ any character).$$;
grant execute on function ringlog.find_parameters to daq_reader, parameter_writer;
