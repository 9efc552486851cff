create or replace function {procedure}({optional_key}) returns setof {now}
language sql stable parallel safe
as $$
  select stored.*
  from {now} as stored
  where {key_given}
  order by {stored_key}
$$;
comment on function {procedure} is
$$The current rows with this key; a part of the key that is omitted or null matches all.$$;
grant execute on function {procedure} to daq_reader, parameter_writer;
