create or replace function {procedure}(
  from_time timestamptz default null, to_time timestamptz default null, max_rows integer default null
) returns setof {log}
language sql stable parallel safe
as $$
  select logged.*
  from {every_row} as logged
  where logged."time" >= coalesce({this}.from_time, '-infinity')
    and logged."time" < coalesce({this}.to_time, 'infinity')
    and ringlog.reads_archive(
      {table}, coalesce({this}.from_time, '-infinity'), coalesce({this}.to_time, 'infinity')
    ) is not null
  order by logged."time", logged.seq_no
  limit {this}.max_rows
$$;
comment on function {procedure} is
$$The rows of the log from from_time on and before to_time, oldest first, and no more than max_rows of them. A bound
that is omitted or null does not limit. Error: weeks of that time are in an archive that PostgreSQL cannot read
(RL003).$$;
grant execute on function {procedure} to daq_reader;
