create or replace function ringlog.table_states()
returns table (
  table_name text,
  cycle double precision,
  newest timestamptz,
  age double precision,
  silent boolean,
  rows_per_second double precision,
  in_default bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known record;
begin
  for known in
    select logged_table.table_name, logged_table.cycle from ringlog.logged_table where not retired order by 1
  loop
    table_name := known.table_name;
    cycle := known.cycle;
    execute format('select max(ring."time") from online.%I as ring', known.table_name) into newest;
    age := extract(epoch from now() - newest);
    silent := age is null or age > greatest(3 * cycle, 60);
    execute format(
      'select count(*) / 60.0 from log.%I as logged'
      ' where logged."time" > now() - interval ''1 minute'' and logged."time" <= now()',
      known.table_name
    ) into rows_per_second;
    execute format('select count(*) from log.%I', known.table_name || '_default') into in_default;
    return next;
  end loop;
end
$$;

comment on function ringlog.table_states() is
$$The state of each table, whichever program writes it: time of the newest row of its ring and its age in seconds;
silent: the age is more than three cycles and a minute; rows added to the log per second, over the last minute; rows in
the log's default partition, whose times belong to no week's partition.$$;

revoke all on function ringlog.table_states() from public;
grant execute on function ringlog.table_states() to daq_reader;
