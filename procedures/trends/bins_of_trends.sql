create or replace function ringlog.bins_of_trends(
  names text[], from_time timestamptz, to_time timestamptz, points integer
) returns table (
  signals text[], have_moved boolean, begins timestamptz, ends timestamptz, width interval, origin timestamptz
)
language plpgsql stable set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  duration double precision := extract(epoch from to_time - from_time);
  -- one bin more if they do not begin with from_time
  least_width double precision := duration / nullif(points - 1, 0);
  same record;
  seconds double precision;
begin
  if duration > 0 is not true or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'from_time (%) must be before to_time (%)', from_time, to_time
      using errcode = 'invalid_parameter_value';
  end if;
  if points between 1 and 1000000 is not true then
    raise exception 'points must be from 1 to 1000000, not %', points
      using errcode = 'invalid_parameter_value';
  end if;
  if exists (select from ringlog.signal_elsewhere) then
    perform ringlog.demand_here(names);
  end if;
  -- the signals of one table together
  for same in
    select
      array_agg(asked.name order by asked.number) as names,
      summarised.levels,
      bool_or(newest.has_moved) as have_moved
    from unnest(names) with ordinality as asked (name, number)
    left join (
      -- the newest table of each signal
      select
        found.signal,
        (array_agg(found.table_name order by found.ends desc))[1] as table_name,
        bool_or(found.begins > from_time and found.begins < to_time) as has_moved
      from ringlog.trend_places(names) as found
      group by found.signal
    ) as newest on newest.signal = asked.name
    left join ringlog.summarised using (table_name)
    group by newest.table_name, summarised.levels
    order by min(asked.number)
  loop
    select coalesce(
      -- single spans, or several if the next longer span is many times as long
      min(each * factor) filter (where each * factor >= least_width and (factor = 1 or each * factor < longer)),
      ceil(least_width / max(each)) * max(each)
    ) into seconds
    from (
      select each, lead(each) over (order by each) as longer from unnest(same.levels) as each
    ) as level
    cross join unnest(array[1, 2, 3, 5]) as factor;

    begins := from_time;
    ends := to_time;
    if seconds < 2 * least_width or points = 1 then
      -- archived rows: bins are whole spans of the summaries
      select
        min(date_bin(shortest, from_time, 'epoch')) filter (where week.begins <= from_time),
        max(date_bin(shortest, to_time - interval '1 microsecond', 'epoch') + shortest)
          filter (where to_time <= week.ends)
      into begins, ends
      from ringlog.trend_places(same.names) as location
      join ringlog.summarised using (table_name)
      -- archived samples can be read
      join ringlog.logged_table using (table_name)
      cross join lateral (select summarised.levels[1] * interval '1 second') as length (shortest)
      join ringlog.cold_week as week
        on week.table_name = location.table_name and week.recalled_until is null
        and week.begins < to_time and from_time < week.ends;
      begins := coalesce(begins, from_time);
      ends := coalesce(ends, to_time);
    end if;
    signals := same.names;
    have_moved := same.have_moved;
    width := case
      when points = 1 then ends - begins
      when seconds < 2 * least_width then seconds * interval '1 second'
      else ceil(duration * 1000000 / points) * interval '1 microsecond'
    end;
    origin := case when points > 1 and seconds < 2 * least_width then 'epoch' else begins end;
    return next;
  end loop;
end
$$;
comment on function ringlog.bins_of_trends is
$$The bins that get_trend and get_trends choose, for the signals of each table: from `begins` to `ends`, as long as `width`,
counted from `origin`. `have_moved`: some of the signals were in another column for a part of that time.$$;
grant execute on function ringlog.bins_of_trends to daq_reader, daq_table_reader;
