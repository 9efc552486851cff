create or replace function {procedure}(
  {optional_key},
  from_time timestamptz default null,
  to_time timestamptz default null
) returns setof {history}
language sql stable parallel safe
as $$
  select stored.*
  from {history} as stored
  where {key_given}
    and ({this}.from_time is null or stored.valid_to is null or stored.valid_to > {this}.from_time)
    and ({this}.to_time is null or stored.valid_from < {this}.to_time)
  order by stored.valid_from, {stored_key}
$$;
comment on function {procedure} is
$$Every row that was valid at some time from from_time (inclusive) to to_time (exclusive), oldest first: since when and
until when, by which change, who made it, with which program, on which machine, and why. valid_to null: it is still
valid.$$;
grant execute on function {procedure} to daq_reader, parameter_writer;
