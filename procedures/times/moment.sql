create or replace function ringlog.moment(nanoseconds bigint) returns timestamptz
language sql stable parallel safe
as $$ select timestamptz '1970-01-01 00:00:00+00' + (moment.nanoseconds / 1000) * interval '1 microsecond' $$;
comment on function ringlog.moment is $$The time of so many nanoseconds since 1970-01-01 UTC, in whole microseconds.$$;
grant execute on function ringlog.moment to daq_reader, daq_table_reader, daq_writer, daq_table_writer;
