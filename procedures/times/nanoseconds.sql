create or replace function ringlog.nanoseconds(at timestamptz) returns bigint
language sql stable parallel safe
as $$
  select case
    when at >= '2262-04-11 00:00+00' then 9223372036854775807
    when at < '1677-09-22 00:00+00' then -9223372036854775808
    else (extract(epoch from at) * 1000000000)::bigint
  end
$$;
comment on function ringlog.nanoseconds is
$$A time in nanoseconds since 1970-01-01 UTC, as tables of samples store it; the greatest or smallest bigint for one that
is beyond it.$$;
grant execute on function ringlog.nanoseconds to daq_reader, daq_table_reader, daq_writer, daq_table_writer;
