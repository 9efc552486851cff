create or replace function {procedure}(at timestamptz)
returns setof {ring}
language sql
stable
parallel safe
as $$
  select in_force.*
  from (
    (
      select {ring_columns}
      from {ring} as ring
      where ring."time" <= {this}.at
      order by ring."time" desc, ring.seq_no desc
      limit 1
    )
    union all
    (
      select {log_columns}
      from {log} as logged
      where logged."time" <= {this}.at
      order by logged."time" desc, logged.seq_no desc
      limit 1
    )
  ) as in_force
  order by in_force."time" desc, in_force.seq_no desc
  limit 1
$$;

comment on function {procedure}(timestamptz) is
$$The row in force at a time: of ring and log the newest that is not newer than this. No row when the table
has none that old.$$;

revoke all on function {procedure}(timestamptz) from public;
grant execute on function {procedure}(timestamptz) to daq_reader;
