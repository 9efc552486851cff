create or replace function ringlog.held_values(
  name text, from_time timestamptz, to_time timestamptz, within tstzmultirange, gap double precision default null
) returns table (begins timestamptz, ends timestamptz, value double precision)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  opens constant timestamptz[] := array(select lower(each) from unnest(within) as each);
  closes constant timestamptz[] := array(select upper(each) from unnest(within) as each);
begin
  return query
    select greatest(held.begins, opens[span]), least(held.ends, closes[span]), held.number
    from ringlog.held_rows(
      name, tstzmultirange(tstzrange(from_time, to_time)) * tstzmultirange(tstzrange(lower(within), upper(within))),
      make_interval(secs => gap)
    ) as held
    cross join lateral generate_series(greatest(1, width_bucket(held.begins, opens)), width_bucket(held.ends, opens)) as span
    where held.number is not null and greatest(held.begins, opens[span]) < least(held.ends, closes[span]);
end
$$;
comment on function ringlog.held_values is
$$The numbers of a signal from from_time (inclusive) to to_time (exclusive), each with the parts of these times (`within`) for which
it is held: until the next row, for at most `gap` seconds. NaN and no reading hold nothing.$$;
grant execute on function ringlog.held_values to daq_reader, daq_table_reader;
