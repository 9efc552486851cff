create or replace function {procedure}({optional_key})
returns setof {now}
language sql
stable
parallel safe
as $$
  select stored.*
  from {now} as stored
  where {key_given}
  order by {stored_key}
$$;

comment on function {procedure}({key_types}) is
$$The rows as they are now, those of this key: a part of it that is left out or null may be anything.$$;

revoke all on function {procedure}({key_types}) from public;
grant execute on function {procedure}({key_types}) to daq_reader, parameter_writer;
