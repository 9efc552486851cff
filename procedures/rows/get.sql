create or replace function {procedure}(n integer default 1) returns setof {ring}
language sql stable parallel safe
as $$
  select ring.*
  from {ring} as ring
  where ring."time" is not null
  order by ring."time" desc, ring.seq_no desc
  limit {this}.n
$$;
comment on function {procedure} is
$$The latest n rows of the ring, newest first; rows never written are left out. n null: all of them.$$;
grant execute on function {procedure} to daq_reader;
