create or replace function {procedure}(
  signal text, from_time timestamptz default null, to_time timestamptz default null, max_rows integer default null,
  _number integer default null
) returns table ("time" timestamptz, nanoseconds smallint, value {type}, severity smallint, status smallint)
language sql stable
as $$
  select each."time", each.nanoseconds, each.value, each.severity, each.status
  from {every_sample} as each
  -- which the archive server gets as a parameter
  where each.number = (
      select coalesce({this}._number, ringlog.number_of_signal({table}, {this}.signal))
      from ringlog.reads_archive(
        {table}, coalesce({this}.from_time, '-infinity'), coalesce({this}.to_time, 'infinity')
      )
    )
    and each.block_ends >= coalesce({this}.from_time, '-infinity')
    -- no block is of two hours
    and each.block_ends < coalesce({this}.to_time, 'infinity') + interval '1 hour'
    and each.block_begins < coalesce({this}.to_time, 'infinity')
    and each."time" >= coalesce({this}.from_time, '-infinity')
    and each."time" < coalesce({this}.to_time, 'infinity')
  order by each."time", each.nanoseconds
  limit {this}.max_rows
$$;
comment on function {procedure} is
$$The samples of a signal of the table from from_time (inclusive) to to_time (exclusive), oldest first, at most max_rows of
them; a bound that is omitted or null does not limit. nanoseconds are those below a microsecond; a null value is no
reading; severity and status are EPICS's. Archived weeks are read too. Errors: no such signal in this table (42704), weeks
of that time in an archive that PostgreSQL cannot read (RL003).$$;
grant execute on function {procedure} to daq_reader;
