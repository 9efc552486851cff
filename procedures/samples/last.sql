create or replace function {procedure}() returns table (signal text, number integer, state text, "time" timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select known.signal, known.number, known.state, coalesce(newest."time", ringlog.moment(archived."time"))
  from ringlog.sample_signal as known
  left join ringlog.last_archived as archived on archived.number = known.number
  left join lateral (
    select block."time" from {log} as block where block.signal = known.number order by block."time" desc limit 1
  ) as newest on true
  where known.table_name = {table} and known.state <> 'retired'
  order by 1
$$;
comment on function {procedure} is
$$The signals of the table that writers may write, with the number by which put_<table>_batch knows each, its state
(active or paused), and the time of its newest sample.$$;
grant execute on function {procedure} to daq_writer, daq_reader;
