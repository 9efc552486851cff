create or replace function ringlog.get_states(
  name text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now()
)
returns table (value bigint, seconds double precision, entered bigint)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  kind text;
begin
  select place.type into kind
  from ringlog.signal_places(array[get_states.name]) as place where place.type in ('real', 'double') limit 1;
  if found then
    raise exception 'get_states: signal ''%'' is % and has no states', name, kind
      using errcode = 'datatype_mismatch', hint = 'Call get_statistics.';
  end if;
  return query
    select state.value::bigint, sum(state.seconds), count(*) filter (where state.entered)
    from (
      select
        logged.value,
        extract(epoch from lead(logged."time", 1, least(to_time, now())) over by_time - logged."time")
          ::double precision as seconds,
        logged.value <> lag(logged.value) over by_time as entered
      from ringlog.get_signal(get_states.name, from_time, to_time) as logged
      where logged.value is not null
      window by_time as (order by logged."time")
    ) as state
    group by state.value
    order by state.value;
end
$$;

comment on function ringlog.get_states is
$$The states of a signal of type bit, smallint, int or bigint from from_time (inclusive) to to_time (exclusive): each
value, its total duration in seconds, and how often the signal changed to it. A value lasts until the next one, the last
one until to_time, or now; the time before the first row is not counted. It reads the rows. Default: the last day.
Errors: a signal that never existed (42704), one of another type (42804), weeks in the archive (RL003).$$;

grant execute on function ringlog.get_states to daq_reader, daq_table_reader;
