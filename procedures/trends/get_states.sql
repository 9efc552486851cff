create or replace function ringlog.get_states(
  name text, from_time timestamptz default now() - interval '1 day', to_time timestamptz default now()
) returns table (value bigint, seconds double precision, entered bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  kind text;
begin
  select location.type into kind
  from ringlog.signal_places(array[get_states.name]) as location where location.type in ('real', 'double') limit 1;
  if found then
    raise exception 'get_states: signal ''%'' is % and has no states', name, kind
      using errcode = 'datatype_mismatch', hint = 'Call get_statistics.';
  end if;
  -- refuses unknown signals and other types
  perform from ringlog.get_signal(name, from_time, to_time, 0);
  return query
    select state.value::bigint, sum(extract(epoch from state.ends - state.begins))::double precision,
      count(*) filter (where state.entered)
    from (
      select held.*, held.value <> lag(held.value) over (order by held.begins) as entered
      from ringlog.held_values(
        get_states.name, from_time, least(to_time, now()), tstzmultirange(tstzrange(from_time, least(to_time, now())))
      ) as held
    ) as state
    group by state.value
    order by state.value;
end
$$;
comment on function ringlog.get_states is
$$The states of a signal of type bit, smallint, int or bigint from from_time (inclusive) to to_time (exclusive), or now: each
value, its total duration in seconds, and how often the signal changed to it. A value is held as in held_values: until the next
row, from the newest row before from_time on; during NULL there is no state. It reads the rows. Default: the last day.
Errors: a signal that never existed (42704), one of another type (42804), weeks in the archive (RL003).$$;
grant execute on function ringlog.get_states to daq_reader, daq_table_reader;
