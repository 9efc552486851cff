create or replace function ringlog.table_states(names text[] default null, again boolean default false) returns table (
  table_name text, cycle double precision, newest timestamptz, age double precision, silent boolean,
  rows_per_second double precision, in_default bigint, unread text, ahead double precision
)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '100ms'
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  known record;
  until constant timestamptz := now();
  present constant timestamptz := until + interval '1 minute';
  arrived timestamptz;
  since constant timestamptz := until - interval '1 minute';
  monday constant timestamptz := date_trunc('week', since, 'UTC');
  next_monday constant timestamptz := monday + interval '168 hours';
  may_look constant boolean := has_function_privilege('pg_stat_file(text, boolean)', 'execute');
  fallback regclass;
  filled boolean;
begin
  for known in
    select
      logged.table_name,
      logged.cycle,
      logged.week,
      arrival.called,
      prepared.name is not null as is_prepared,
      case
        when logged.week is null then
          -- times as constants: only their weeks are opened
          format(
            'select (select max("time") from online.%I), (select count(*) / 60.0 from weeks.%I'
            ' where "time" > %L and "time" <= %L)',
            logged.table_name, logged.table_name, since, until
          )
        else
          format(
            'select (select max("time") from online.%I), (select count(*) / 60.0 from log.%I'
            ' where "time" > $1 and "time" <= $2)',
            logged.table_name, logged.week
          )
      end as query
    from (
      select logged_table.table_name, logged_table.cycle, weeks.relname as week
      from ringlog.logged_table
      -- the week with the whole last minute, if the caller may read it: opened alone, without its log
      left join (
        pg_class as weeks
        join pg_namespace as schema on schema.oid = weeks.relnamespace and schema.nspname = 'log'
        join pg_inherits on inhrelid = weeks.oid
      )
      on weeks.relname = logged_table.table_name || to_char(monday at time zone 'UTC', '_IYYY"w"IW')
        and inhparent = to_regclass(format('weeks.%I', logged_table.table_name))
        and pg_get_expr(weeks.relpartbound, 0) = format('FOR VALUES FROM (%L) TO (%L)', monday, next_monday)
        and until < next_monday
        and has_table_privilege(weeks.oid, 'select')
      where not retired and (names is null or logged_table.table_name = any(names))
    ) as logged
    left join pg_prepared_statements as prepared on again and prepared.name = logged.week
    left join ringlog.arrivals() as arrival on arrival.table_name = logged.table_name
    order by 1
  loop
    table_name := known.table_name;
    cycle := known.cycle;
    newest := null;
    rows_per_second := null;
    in_default := null;
    unread := null;
    begin
      if again and known.week is not null then
        if not known.is_prepared then
          execute format('prepare %I (timestamptz, timestamptz) as %s', known.week, known.query);
        end if;
        execute format('execute %I (%L, %L)', known.week, since, until) into newest, rows_per_second;
      else
        execute known.query into newest, rows_per_second using since, until;
      end if;
      fallback := format('log.%I', known.table_name || '_default')::regclass;
      -- see has_pages of ringlog.schema.relations.partitions
      if may_look then
        filled := (pg_stat_file(pg_relation_filepath(fallback), true)).size > 0;
      else
        filled := true;
      end if;
      in_default := 0;
      if filled then
        execute format('select count(*) from %s', fallback) into in_default;
      end if;
    exception
      when lock_not_available then
        unread := 'locked by another transaction';
        -- one wait for all tables
        perform set_config('lock_timeout', '1ms', true);
      when others then
        unread := sqlerrm;
    end;
    if unread is not null then
      newest := null;
      rows_per_second := null;
      in_default := null;
    end if;
    ahead := case when newest > present then extract(epoch from newest - until) end;
    arrived := greatest(known.called, case when newest <= present then newest end);
    age := case when unread is null then extract(epoch from until - arrived) end;
    silent := case
      -- the arrival of a row ahead of the clock is known only for calls over TDS
      when unread is null and (ahead is null or arrived is not null) then
        age is null or age > greatest(3 * cycle, 60)
    end;
    return next;
  end loop;
  for known in
    select sampled.table_name, arrival.called
    from ringlog.sample_table as sampled
    left join ringlog.arrivals() as arrival on arrival.table_name = sampled.table_name
    where names is null or sampled.table_name = any(names)
    order by 1
  loop
    table_name := known.table_name;
    cycle := null;
    silent := null;
    unread := null;
    newest := null;
    rows_per_second := null;
    in_default := null;
    begin
      execute format(
        'select max("time"), coalesce(sum(n) filter (where "time" <= $2), 0) / 60.0 from weeks.%I where "time" > $1',
        table_name
      ) into newest, rows_per_second using since, until;
      -- an index of ranges of pages: the near past is found fast
      for hours in 1 .. 3 loop
        exit when newest is not null;
        execute format('select max("time") from weeks.%I where "time" > $1', table_name)
        into newest using until - (array[1, 24, 24 * 31])[hours] * interval '1 hour';
      end loop;
      execute format('select coalesce(sum(n), 0) from log.%I', table_name || '_default') into in_default;
    exception
      when lock_not_available then
        unread := 'locked by another transaction';
      when others then
        unread := sqlerrm;
    end;
    ahead := case when newest > present then extract(epoch from newest - until) end;
    age := extract(epoch from until - greatest(known.called, case when newest <= present then newest end));
    return next;
  end loop;
end
$$;
comment on function ringlog.table_states is
$$The state of each table, or of the named ones, whichever program writes it: time of the newest row of its ring; age:
seconds since a row came, by the last call of its put over TDS or by the newest row; silent: the age is more than three
cycles and a minute; ahead: seconds that the newest row is ahead of the clock, from a minute on; rows added to the log per second, over the last
minute; rows in the log's default partition, whose times belong to no week's partition. A table that is locked for more
than 100 ms, or cannot be read, has none of these but the reason in unread. again: the session will ask again, and keeps
its statements prepared. A table of samples has no cycle and is never silent; its rows are samples, and newest is of the
last 31 days.$$;
grant execute on function ringlog.table_states to daq_reader, daq_table_reader;
