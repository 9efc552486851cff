create or replace function ringlog.silences(from_time timestamptz default null, of_table text default null)
returns table (table_name text, last timestamptz, cycles bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known record;
begin
  for known in
    select logged_table.table_name, logged_table.cycle, arrival.called
    from ringlog.logged_table
    left join ringlog.arrivals() as arrival on arrival.table_name = logged_table.table_name
    -- tables that one of ringlog's writers has ever written
    join ringlog.writer on writer.table_name = logged_table.table_name
    where not logged_table.retired
      and (silences.of_table is null or logged_table.table_name = silences.of_table)
    order by logged_table.table_name
  loop
    -- the time of a row ahead of the clock is not the time of its arrival
    execute format(
      'select max(ring."time") from online.%I as ring where ring."time" <= now() + interval ''1 minute''',
      known.table_name
    ) into last;
    last := greatest(last, known.called);
    table_name := known.table_name;
    cycles := floor(
      extract(epoch from now() - greatest(last, silences.from_time)) / known.cycle
    )::bigint;
    if last is null or now() - last > make_interval(secs => greatest(3 * known.cycle, 60)) then
      return next;
    end if;
  end loop;
end
$$;
comment on function ringlog.silences is
$$Tables of ringlog's writers that have had no row for three cycles, at least a minute: when the last one came, and
how many cycles have passed since, or since from_time.$$;
grant execute on function ringlog.silences to daq_reader, daq_table_reader;
