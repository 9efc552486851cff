create or replace function ringlog.held_mean(
  name text, from_time timestamptz, to_time timestamptz, within tstzmultirange, gap double precision default null
) returns double precision
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select sum(held.value * each.seconds) / sum(each.seconds)
  from ringlog.held_values(held_mean.name, held_mean.from_time, held_mean.to_time, held_mean.within, held_mean.gap) as held
  cross join lateral (select extract(epoch from held.ends - held.begins)::double precision) as each (seconds)
$$;
comment on function ringlog.held_mean is
$$The mean of a signal's numbers weighted by the time for which each is held (held_values); null if none is.$$;
grant execute on function ringlog.held_mean to daq_reader, daq_table_reader;
