-- An argument more than before: the one without it would be ambiguous.
drop function if exists ringlog.table_states();

create or replace function ringlog.table_states(names text[] default null)
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
  may_look constant boolean := has_function_privilege('pg_stat_file(text, boolean)', 'execute');
  fallback regclass;
  filled boolean;
begin
  for known in
    select logged_table.table_name, logged_table.cycle from ringlog.logged_table
    where not retired and (names is null or logged_table.table_name = any(names))
    order by 1
  loop
    table_name := known.table_name;
    cycle := known.cycle;
    execute format('select max(ring."time") from online.%I as ring', known.table_name) into newest;
    age := extract(epoch from now() - newest);
    silent := age is null or age > greatest(3 * cycle, 60);
    -- times as constants: only the week that has them is opened
    execute format(
      'select count(*) / 60.0 from log.%I as logged where logged."time" > %L and logged."time" <= %L',
      known.table_name, now() - interval '1 minute', now()
    ) into rows_per_second;
    in_default := 0;
    fallback := format('log.%I', known.table_name || '_default')::regclass;
    -- see has_pages of ringlog.schema.partitions
    if may_look then
      filled := (pg_stat_file(pg_relation_filepath(fallback), true)).size > 0;
    else
      filled := true;
    end if;
    if filled then
      execute format('select count(*) from %s', fallback) into in_default;
    end if;
    return next;
  end loop;
end
$$;

comment on function ringlog.table_states(text[]) is
$$The state of each table, or of the named ones, whichever program writes it: time of the newest row of its ring and its
age in seconds; silent: the age is more than three cycles and a minute; rows added to the log per second, over the last
minute; rows in the log's default partition, whose times belong to no week's partition.$$;

revoke all on function ringlog.table_states(text[]) from public;
grant execute on function ringlog.table_states(text[]) to daq_reader;
