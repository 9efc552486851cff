create or replace function {procedure}(out seq_no integer, out "time" timestamptz)
language sql stable parallel safe
as $$
  select newest.seq_no, newest."time"
  from {ring} as newest
  where newest."time" = (select max(ring."time") from {ring} as ring)
  -- several rows may have this time: the one after which the ring continues
  order by
    (select next."time" from {ring} as next where next.seq_no = newest.seq_no % {rows} + 1)
      is distinct from newest."time" desc,
    newest.seq_no desc
  limit 1
$$;
comment on function {procedure} is
$$seq_no and time of the latest row of the ring, null for a ring that was never written: a writer continues after it.$$;
grant execute on function {procedure} to daq_reader, daq_writer;
