create or replace function {procedure}(at timestamptz) returns setof {ring}
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  since timestamptz;
  newest {ring};
  archived {ring};
begin
  -- usually a row is near, and no plan over all weeks of the log is needed
  foreach since in array array[at - interval '14 days', '-infinity'] loop
    select in_force.* into newest
      from (
        (
          select {ring_columns}
          from {ring} as ring
          where ring."time" <= at and ring."time" >= since
          order by ring."time" desc, ring.seq_no desc
          limit 1
        )
        union all
        (
          select {log_columns}
          from {log} as logged
          where logged."time" <= at and logged."time" >= since
          order by logged."time" desc, logged.seq_no desc
          limit 1
        )
      ) as in_force
      order by in_force."time" desc, in_force.seq_no desc
      limit 1;
    exit when found;
  end loop;
  -- a later row may be in the archive
  since := coalesce(newest."time", '-infinity');
  if ringlog.reads_archive({table}, since, at + interval '1 microsecond') then
    select {log_columns} into archived
    from {every_row} as logged
    where logged."time" <= at and logged."time" >= since
    order by logged."time" desc, logged.seq_no desc
    limit 1;
    if newest."time" is null or (archived."time", archived.seq_no) > (newest."time", newest.seq_no) then
      newest := archived;
    end if;
  end if;
  if newest."time" is not null then
    return next newest;
  end if;
end
$$;
comment on function {procedure} is
$$The row that was valid at a time: of ring and log the newest one that is not later. No row when all rows are later.
Error: the row may be in an archive that PostgreSQL cannot read (RL003).$$;
grant execute on function {procedure} to daq_reader;
